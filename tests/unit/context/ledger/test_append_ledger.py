"""The ledger below a model's prose (lessons 20, 21)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.context.ledger.append_ledger import append_ledger, write_ledger
from codecompanion.context.ledger.facts import gather
from codecompanion.context.ledger.ledger import summarise
from codecompanion.context.message_facts.earlier_files import earlier_files
from codecompanion.context.strategy_parameters import AppendLedger, QuoteUserMessages, SummarizeLedger
from codecompanion.context.summary.summarize_one import summarize_ledger
from codecompanion.context.summary_text.place_quotes import read_quotes
from codecompanion.context.summary_text.quote_user_messages import quote_user_messages
from codecompanion.context.summary_text.sections import load_schema, parse_sections
from codecompanion.context.work import Details, Work
from codecompanion.model.messages import SUMMARY_TAG, Message, ToolCall, with_changes
from codecompanion.placeholders import LEDGER_HEADING, TOOL_RESULT_CLEARED
from tests.unit.context.builders import assistant, chars4, chat, count, env, tool, user
from tests.unit.context.summary_text.test_quote_user_messages import written


def call(name, call_id="c", **arguments):
    return Message(id="", role="assistant", tool_calls=(ToolCall(call_id, name, json.dumps(arguments)),))


DAY = chat(
    user("make the loader faster"),
    call("todo_write", todos=[{"content": "measure", "status": "completed"}, {"content": "cache it"}]),
    tool("c", "ok"),
    call("edit_file", path="src/loader.py", new_text="class Loader:\n    def load_all(self):\n        pass\n"),
    tool("c", "ok"),
    call("run_command", command="pytest -q"),
    tool("c", "exit code 1\nValueError: bad header in parse_header"),
    assistant("The root cause is the header. " + "words " * 3000),
)


def below(removed=DAY, summary="Prose about load_all.", params=None, **details):
    """Run the strategy; return the work."""
    work = Work(before=removed, messages=(), removed=removed, summary=summary, details=Details(**details))
    outcome = append_ledger(work, params or AppendLedger(), env(removed, 100_000))
    assert isinstance(outcome, Work)
    return outcome


def test_the_ledger_lists_the_events():
    """Lesson 21: events are files with changes, symbols, commands with status, errors, todos, decisions and names."""
    text = below().summary
    assert text.startswith(
        f"Prose about load_all.\n\n{LEDGER_HEADING}\nFiles:\n- src/loader.py (edited: Loader, load_all)"
    )
    assert "Commands:\n- ran: pytest -q → exit 1" in text
    assert "Errors:\n- ValueError: bad header in parse_header (pytest -q)" in text
    assert "Todos:\n- [ ] cache it\n- [x] measure" in text
    assert 'Decisions:\n- said: "The root cause is the header."' in text


def test_a_result_cleared_by_an_earlier_turn_is_read_in_its_original():
    """Its names, commands and errors are in the log; without the log only the placeholder is available."""
    originals = {message.id: message for message in DAY}
    before = tuple(
        with_changes(message, content=TOOL_RESULT_CLEARED, edited=True) if message.role == "tool" else message
        for message in DAY
    )
    work = Work(before=before, messages=(), removed=before, summary="Prose.")
    known, unknown = env(before, 100_000, original=lambda message: originals[message.id]), env(before, 100_000)
    assert "Errors:\n- ValueError: bad header in parse_header" in append_ledger(work, AppendLedger(), known).summary
    assert "ValueError" not in append_ledger(work, AppendLedger(), unknown).summary


def test_names_in_the_prose_are_not_repeated():
    many = chat(*[call("grep", query=f"name_{n}") for n in range(9)], assistant("words " * 2000))
    names = below(many, "Prose about name_3.").summary.rpartition("\nNames: ")[2].split(", ")
    assert sorted(names) == [f"name_{n}" for n in range(9) if n != 3]


def test_lines_of_the_summary_are_not_repeated():
    """The built-in summariser writes the same lists into its sections: files used to be listed twice."""
    text = below(summary=summarise(DAY, 2000, chars4)).summary
    lines = [line for line in text.split("\n") if line.startswith("- ") and "loader.py" in line]
    assert len(lines) == len(set(lines))
    assert "- src/loader.py (edited: Loader, load_all)" in lines


def test_the_ledger_is_below_the_quotes_and_outside_the_sections():
    """Text added by code is never read as prose of the last section."""
    outcome = quote_user_messages(below(summary=written()), QuoteUserMessages(), env(DAY, 100_000))
    found = parse_sections(outcome.summary, load_schema("cc_9"))
    assert found.tail.startswith(LEDGER_HEADING)
    assert found.body(9) == "prose 9"
    assert [quote.text for quote in read_quotes(outcome.summary).quotes] == ["make the loader faster"]
    free = quote_user_messages(below(summary="free"), QuoteUserMessages(), env(DAY, 100_000)).summary
    assert free.index("> make the loader faster") < free.index(LEDGER_HEADING)
    first_quotes = quote_user_messages(
        Work(before=DAY, messages=(), removed=DAY, summary="free"), QuoteUserMessages(), env(DAY, 100_000)
    ).summary
    assert below(summary=first_quotes).summary == free


def test_the_ledger_has_its_own_budget_and_a_share_of_the_window():
    """Lesson 21: long prose does not reduce the ledger; in a small window it is small."""
    many = chat(
        *[call("read_file", path=f"src/module_{n}/file_name_{n}.py") for n in range(400)], assistant("w" * 40_000)
    )
    sizes = {prose: below(many, "x" * 4 * prose).details.ledger_tokens for prose in (100, 1_900, 5_000)}
    assert all(size == pytest.approx(2_500, abs=60) for size in sizes.values())
    work = Work(before=many, messages=(), removed=many, summary="prose")
    for window in (2_000, 20_000):
        small = append_ledger(work, AppendLedger(), env(many, window))
        assert isinstance(small, Work)
        assert small.details.ledger_tokens == pytest.approx(0.06 * window, abs=40)


def test_names_the_model_still_sees_are_not_repeated():
    """Kept messages do not need a second place in the summary."""
    said = [call("grep", query=f"name_{n}") for n in range(9)]
    before = chat(*said, assistant("words " * 2000), assistant("name_1 is wrong"), call("grep", query="name_2"))
    work = Work(before=before, messages=before[10:], removed=before[:10], summary="Prose.")
    outcome = append_ledger(work, AppendLedger(), env(work.before, 100_000))
    names = outcome.summary.rpartition("\nNames: ")[2].split(", ")
    assert sorted(names) == [f"name_{n}" for n in range(9) if n not in (1, 2)]


def test_results_cleared_by_the_same_stage_are_read():
    """CodeBuddy's second tier works on the stripped results of its first (R-119): their names used to be lost."""
    found = chat(call("search", query="loader"), tool("c", "src/deep/late_loader.py: parse_header"))
    found = tuple(with_changes(message, id=f"m{n}") for n, message in enumerate(found))
    stripped = (found[0], with_changes(found[1], content="[Tool result truncated]"))
    long = chat(assistant("words " * 3000))
    work = Work(before=(*found, *long), messages=(), removed=(*stripped, *long), summary="Prose.")
    text = append_ledger(work, AppendLedger(), env(work.before, 100_000)).summary
    assert "src/deep/late_loader.py" in text
    assert "parse_header" in text


def test_the_ledger_never_takes_more_than_half_of_the_freed_tokens():
    """Lesson 9: a summary larger than the text it replaces is useless."""
    short = chat(user("hi"), call("read_file", path="a.py"), tool("c", "x" * 800))
    outcome = below(short, "prose")
    freed = sum(map(count, short))
    assert chars4(outcome.summary) <= freed // 2 + chars4("prose") + 2
    assert below(chat(user("hi")), "prose").summary == "prose"


def test_a_summary_that_is_a_ledger_is_unchanged():
    """The tier without a model is followed by the same steps."""
    work = Work(before=DAY, messages=(), removed=DAY)
    outcome = summarize_ledger(work, SummarizeLedger(), env(DAY, 100_000))
    assert append_ledger(outcome, AppendLedger(), env(DAY, 100_000)) == outcome


def test_changes_of_files_are_known_after_many_compactions():
    """Lesson 21: an edit of the first round is still listed in the fifth, with its symbols; so is an open todo."""
    text = below().summary
    for round_number in range(5):
        message = Message(id="s", role="user", tag=SUMMARY_TAG, content=text)
        removed = (message, *chat(call("read_file", path=f"src/other_{round_number}.py"), assistant("w " * 4000)))
        text = below(removed, "Prose.").summary
    assert "loader.py (edited: Loader, load_all)" in text
    assert "other_0.py (read)" in text
    assert "- [ ] cache it" in text


def test_repetitions_in_a_summary_are_counted_once():
    """Lesson 21: a model's prose may copy a line of the ledger below it; the counts do not grow over five rounds."""
    log = chat(*[call("edit_file", path="src/loader.py", new_text="x")] * 3, assistant("words " * 3000))
    for _ in range(5):
        text = below(log, summarise(log, 2000, chars4)).summary
        (line,) = [line for line in text.split("\n") if "loader.py (edited ×3" in line]
        text += f"\n\n{LEDGER_HEADING}\nFiles:\n{line}"
        log = (Message(id="s", role="user", tag=SUMMARY_TAG, content=text), *chat(assistant("w " * 4000)))


def test_files_are_read_back_as_written():
    facts = gather(DAY)
    (line,) = [line for line in write_ledger(facts, 500, "", chars4).split("\n") if "loader.py" in line]
    (file,) = earlier_files(line)
    assert (file.path, file.actions, file.symbols) == ("src/loader.py", {"edited": 1}, ("Loader", "load_all"))
    listed = "c.py (read ×3), seen.py, d e.py (created, edited ×2)"
    for folder in ("/a/b/: ", "/a/b/ "):  # without the colon: as summaries were written before
        both = earlier_files(
            f"- {folder}{listed}\n- x.py (read), y.py (edited)\nz.py (read)\n- src/(app)/p, q.tsx (read)"
        )
        assert [(f.path, f.actions) for f in both] == [
            ("/a/b/c.py", {"read": 3}),
            ("/a/b/d e.py", {"created": 1, "edited": 2}),
            ("x.py", {"read": 1}),
            ("y.py", {"edited": 1}),
            ("src/(app)/p, q.tsx", {"read": 1}),
        ]


def test_the_common_folder_of_all_files_is_named_once_and_read_back():
    """A shared prefix of 50 characters used to be repeated for every folder, so that half of the files did not fit."""
    root = "/home/somebody/work/a-project-with-a-long-name"
    log = chat(
        *[call("read_file", path=f"{root}/src/part_{n}/file_{n}.py") for n in range(9)],
        call("edit_file", path=f"{root}/README.md", new_text="x"),
        call("read_file", path="/etc/hosts.conf"),
        call("read_file", path="top.py"),
    )
    lines = write_ledger(gather(log), 900, "", chars4).split("\n")
    assert lines[1:3] == ["Files:", f"Paths that do not start with / are in {root}."]
    assert "- ./README.md (edited)" in lines
    assert "- src/part_3/file_3.py (read)" in lines
    assert "- /etc/hosts.conf (read)" in lines
    assert {file.path for file in earlier_files("\n".join(lines))} == {
        *(f"{root}/src/part_{n}/file_{n}.py" for n in range(9)), f"{root}/README.md", "/etc/hosts.conf", "top.py",
    }  # fmt: skip


def test_an_imported_file_is_listed_once():
    """A bare name or an import path is not a separate file beside the full path."""
    log = chat(
        call("read_file", path="src/core/store.ts"),
        call("read_file", path="test/store.ts"),
        assistant("store.ts, ../core/store.ts and ../../lib/queue.js use it; so does queue.js."),
    )
    text = write_ledger(gather(log), 400, "", chars4)
    assert [line for line in text.split("\n") if line.startswith("- ")] == [
        "- test/store.ts (read)",
        "- src/core/store.ts (read)",
        "- lib/queue.js",
    ]


def test_files_named_in_a_long_written_text_are_known():
    """In a plan of 50,000 characters, the next steps' files were all named after the part that used to be read."""
    plan = "word " * 9_000 + "- move src/tui/late_part.ts"
    text = write_ledger(gather(chat(call("write_file", path="plan.md", content=plan))), 400, "", chars4)
    assert "src/tui/late_part.ts" in text


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("def parse_all(x):\n    pass", "parse_all"),
        ("+    async def run_it(self):", "run_it"),
        ("pub fn next_token(&mut self) {", "next_token"),
        ("func (p *Parser) ParseAll() error {", "ParseAll"),
        ("local function M.setup(opts)", "M.setup"),
        ("export default class UserStore {", "UserStore"),
        ("struct Point { x: i32 }", "Point"),
        ("export interface Props {", "Props"),
        (
            "def test_clearance_is_a_tenth_but_never_less_than_sixty_centimetres():",
            "test_clearance_is_a_tenth_but_never_less_than_sixty_centimetres",
        ),
    ],
)
def test_symbols_are_the_definitions_in_an_edit(text, symbols):
    """Definitions are found in any language, and in diffs."""
    line = write_ledger(
        gather(chat(call("insert_edit", path="a.txt", new_text=text), tool("c", "ok"))), 400, "", chars4
    )
    assert f"a.txt (edited: {symbols})" in line


@pytest.mark.parametrize("schema", ["cc_9", "cw_9", "brief"])
def test_the_ledger_summary_is_written_in_any_schema(schema):
    """K17: the sections are those of the schema; facts without a section are not lost."""
    text = summarise(DAY, 2000, chars4, schema)
    chosen = load_schema(schema if schema != "brief" else "cc_9")
    found = parse_sections(text, chosen)
    assert [part.title for part in found.parts] == [section.title for section in chosen.section]
    assert "pytest -q → exit 1" in text
    assert "root cause" in text
    assert found.body(chosen.number_of("user_messages")) == "> make the loader faster"
    assert "loader.py (edited: Loader, load_all)" in found.body(chosen.number_of("files"))


@pytest.mark.sweep
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3000), st.integers(0, 4))
def test_the_budget_is_kept(budget, copies):
    assert chars4(write_ledger(gather(DAY * copies), budget, "", chars4)) <= budget


def test_a_long_line_of_a_summary_is_read_once():
    """A pasted line of 60,000 letters used to take minutes: a quadratic search for the end of a name."""
    (file,) = earlier_files("- " + "a" * 60_000 + "\n- src/: a.py (edited ×2)")
    assert (file.path, file.actions) == ("src/a.py", {"edited": 2})
