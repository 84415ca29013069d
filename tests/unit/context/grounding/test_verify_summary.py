"""Names and numbers of a summary are checked against the history (lesson 11, R-430's prose)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.context.grounding.known_names import Known, KnownNames, _slices
from codecompanion.context.grounding.verify_summary import mark_unverified, verify_summary
from codecompanion.context.strategy_parameters import VerifySummary
from codecompanion.context.summary_text.place_quotes import put_quotes
from codecompanion.context.work import Details, Work
from codecompanion.model.messages import SUMMARY_TAG, ImagePart, Message, TextPart, ToolCall
from tests.unit.context.builders import assistant, chat, env, tool, user

HISTORY = chat(
    user("Please make load_config in src/app/config.py read 12,000 lines; see https://example.com/docs/a?x=1"),
    Message(
        id="",
        role="assistant",
        content="I look at `parseHeader`.",
        tool_calls=(ToolCall("c1", "read_file", json.dumps({"path": "/repo/pkg/main.go", "text": "a\nfooBar\n"})),),
    ),
    tool("c1", 'func Run_all() { }\nlog: {"m": "x\\nbarBaz"} commit 4f5e6d7a8b9c took 1.25 s in .github/ci.yml'),
    assistant("cd /home/me/proj && python -m pytest lib/deep/test_it.py:123"),
)


def known_in(messages) -> Known:
    return KnownNames().of(tuple(messages))


def marked(text, history=HISTORY):
    return mark_unverified(text, known_in(history))[0]


@pytest.mark.parametrize(
    "text",
    [
        "`load_config` in src/app/config.py was changed",
        "config.py, app/config.py and `/repo/pkg/main.go` were read",
        "pkg/main.go:123 and src/app/ and /repo/pkg/",
        "it reads 12000 (12,000) lines",
        "fooBar, barBaz and *parseHeader*, __Run_all__",
        "load\\_config was **load_config**",
        "commit 4f5e6d7 took 1.25s",
        "`.github/ci.yml` runs; also ./lib/deep/test_it.py and ...lib/deep/test_it.py",
        "/home/me/proj/lib/deep/test_it.py is the whole path",
        "see https://example.com/docs/a",
        "3. **parseHeader** was third and/or last, 1. not a number",
        "JavaScript and GitHub need not have been seen; try/except, input/output",
        "",
        "Es wurde `load_config` geändert；修改load_config函数",
        "```python\nload_config(12000)\n```",
    ],
)
def test_names_in_the_history_are_not_marked(text):
    """Copied names stay unchanged in any surroundings."""
    assert marked(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`load_confg` was changed", "`load_confg` (unverified) was changed"),
        ("in src/app/confg.py now", "in src/app/confg.py (unverified) now"),
        ("lib/config.py.", "lib/config.py (unverified)."),
        ("/repo/src/main.go", "/repo/src/main.go (unverified)"),
        ("see src/other/ too", "see src/other/ (unverified) too"),
        ("parse_header and fooBar", "parse_header (unverified) and fooBar"),
        ("since 3.12.7 only", "since 3.12.7 (unverified) only"),
        ("it took 1.5s.", "it took 1.5s (unverified)."),
        ("commit 0f5e6d7 fixed it", "commit 0f5e6d7 (unverified) fixed it"),
        ("`frobnicate()` is gone", "`frobnicate()` (unverified) is gone"),
        ("run `python -m frobtest`", "run `python -m frobtest` (unverified: frobtest)"),
        ("- **newThing**: done", "- **newThing (unverified)**: done"),
        ("see https://example.com/b", "see https://example.com/b (unverified)"),
        ("`make new_one` or so", "`make new_one` (unverified: new_one) or so"),
        ("foo\\_bar is it", "foo\\_bar (unverified) is it"),
        ("```\nnew_thing(load_config)\n```\nend", "```\nnew_thing(load_config)\n```\n(unverified: new_thing)\nend"),
        ("```\nnew_thing\n```", "```\nnew_thing\n```\n(unverified: new_thing)\n"),
    ],
)
def test_unknown_names_are_marked_after_the_name(text, expected):
    """Lesson 11: the mark of a name in a code block is below the block, so that the code stays unchanged."""
    assert marked(text) == expected
    assert marked(expected) == expected, "a mark is not marked again"


@pytest.mark.parametrize(
    "text",
    [
        "all 777 tests pass, 3 of 12 are new, 99.5 % of 1,234,567 lines",
        "it answers 404, HTTP 503 or a 500; clients got 429s",
        "step 7 of section 4.2 in 2031, port 9999",
        "colours are 54, 162 and 0.8",
    ],
)
def test_plain_numbers_and_status_codes_are_not_marked(text):
    """A summary has its own counts, and an HTTP status is not a name."""
    assert marked(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Create src/new_part.py with the parser",
        "- write the tests in `tests/test_new.py`, then run them",
        "Next: add a new file docs/more.md and lib/extra/",
        "src/new_part.py is still to be written",
        "`src/new_part.py` does not exist yet.",
        "src/new_part.py (new) will hold it",
        "Move it to src/new_part.py.",
        "Files to create:\n- src/one.py\n- src/two.py: the rest",
        "## Proposed structure\n```\nsrc/one.py\nsrc/two.py\n```",
        "Split config.py into src/one.py, src/two.py and src/three.py",
    ],
)
def test_planned_files_are_not_marked(text):
    """Planned files cannot occur in the history yet."""
    assert marked(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Created src/new_part.py with the parser",
        "src/new_part.py was created. Write more.",
        "I have written src/new_part.py",
        "Write the parser. It is read by src/new_part.py",
        "see src/new_part.py",
        "Files to create:\n- src/one.py (it was added)\n\nsrc/new_part.py is read",
    ],
)
def test_a_claim_that_a_file_exists_is_checked(text):
    """Lesson 11: only planned files are exempt."""
    assert " (unverified)" in marked(text)


def test_a_planned_file_does_not_become_true():
    """A second compaction reads the plan in the first summary; the creation of the file is still a claim."""
    planned = "Create src/new_part.py. config.py is read."
    history = (Message(id="s", role="user", tag=SUMMARY_TAG, content=planned),)
    assert marked(planned, history) == planned
    assert marked("src/new_part.py was created, config.py too", history).count("(unverified)") == 1
    quoted = (Message(id="s", role="user", tag=SUMMARY_TAG, content="> create src/new_part.py"),)
    assert marked("see src/new_part.py", quoted) == "see src/new_part.py"


def test_a_part_of_a_name_is_a_different_name():
    """`load_conf` is marked although `load_config` exists, and `Header` although `parseHeader` exists."""
    assert marked("load_conf, `Header`") == "load_conf (unverified), `Header` (unverified)"


def test_names_are_found_after_colour_codes():
    history = chat(user("run"), tool("c", "\x1b[32mrun_all\x1b[0m [31mfail_one[0m parent[make_tuple(x)]"))
    text = "run_all, fail_one and make_tuple"
    assert marked(text, history) == text


def test_paths_and_names_of_attachments_count():
    history = chat(
        user((TextPart("x"), ImagePart(path="shots/one_two.png"))), user("body", tag="file", path="src/attached.rs")
    )
    text = "shots/one_two.png and attached.rs"
    assert marked(text, history) == text


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("newThing (unverified) was made", "newThing was made"),
        ("`new_thing()` (unverified) was made", "`new_thing()` was made"),
        ("run `make frob_it` (unverified: frob_it)", "frob_it is run"),
        ("```\nold_one(new_one)\n```\n(unverified: new_one)", "new_one is called"),
        ("**newThing (unverified)**, again newThing", "newThing"),
    ],
)
def test_a_marked_name_does_not_become_true_in_the_next_summary(first, again):
    """A second compaction reads the first summary: a name unverified then is still unverified."""
    history = (Message(id="s", role="user", tag=SUMMARY_TAG, content=first),)
    assert "(unverified" in marked(again, history)
    assert marked("fine_name", (*history, *chat(user("fine_name")))) == "fine_name"


def test_the_strategy_counts_its_lookups():
    work = Work(before=HISTORY, messages=(), removed=HISTORY, summary="load_config, newThing and newThing, no/such.py")
    outcome = verify_summary(work, VerifySummary(), env(HISTORY, 1000))
    assert isinstance(outcome, Work)
    assert outcome.details == Details(names=3, unverified=2, unverified_names=("newThing", "no/such.py"))
    assert outcome.summary.count("(unverified)") == 3
    assert verify_summary(Work(before=HISTORY, messages=()), VerifySummary(), env(HISTORY, 1000)).summary == ""


def test_quotes_added_later_are_unchanged():
    """The user's words are copied by code after this step; they carry no marks."""
    summary = put_quotes(marked("newThing"), "> use newThing")
    assert "> use newThing" in summary.split("\n")


LETTERS = st.text(alphabet="abcdefghxyzABC019", min_size=1, max_size=6)
SNAKE = st.lists(LETTERS.filter(str.isalpha), min_size=2, max_size=3).map("_".join)
CAMEL = st.tuples(SNAKE, LETTERS).map(lambda pair: pair[0].replace("_", "").lower() + "Q" + pair[1])
FILE = st.lists(LETTERS, min_size=1, max_size=4).map(lambda parts: "/".join(parts) + ".py")
ROOTED = FILE.map(lambda path: "/" + path)
NUMBERS = st.integers(0, 10**7).map(str) | st.decimals(0, 999, places=2).map(str)
NAMES = SNAKE | CAMEL | FILE | ROOTED | NUMBERS
AROUND = st.sampled_from(
    ["{}", "`{}`", "**{}**", "({})", '"{}"', "{}.", "{},", "[{}]", "see {} now", "- {}", "`run {}`", "{}: ok", "'{}'"]
)
PLACES = st.sampled_from(["text", "argument", "json result", "call name", "attachment"])


def told(name, place):
    """Return a message that contains the name."""
    match place:
        case "argument":
            call = ToolCall("c", "t", json.dumps({"a": [f"x\n{name}\ny"]}))
            return Message(id="m", role="assistant", tool_calls=(call,))
        case "json result":
            return Message(id="m", role="tool", content=json.dumps({"out": f"x\n{name}\n\ty"}))
        case "attachment":
            return Message(id="m", role="user", tag="file", path=name)
        case "call name":
            return Message(id="m", role="assistant", content=f"Tool {name}({name}) said <{name}>")
    return Message(id="m", role="user", content=f"what about `{name}`, then? ({name}):{name}")


@pytest.mark.sweep
@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(NAMES, PLACES, AROUND), min_size=1, max_size=6))
def test_no_name_copied_from_the_history_is_marked(names):
    """The name may be anywhere in the history, in any notation."""
    history = tuple(told(name, place) for name, place, _ in names)
    text = "\n".join(around.format(name) for name, _, around in names).replace("run ", "")
    marked_text, looked_up, missing = mark_unverified(text, known_in(history))
    assert (marked_text, missing) == (text, [])
    assert looked_up <= len(names)


@pytest.mark.sweep
@settings(max_examples=400, deadline=None)
@given(SNAKE | CAMEL | FILE | ROOTED | NUMBERS, AROUND, st.lists(st.tuples(NAMES, PLACES), max_size=5))
def test_every_invented_name_is_marked(invented, around, others):
    """In any notation, the name is followed by the mark, and no text is lost."""
    prefix = "9" if invented[-1].isdigit() and invented[0].isdigit() else "zz_"
    head, slash, tail = invented.rpartition("/")
    name = f"{head}{slash}{prefix}{tail}" if prefix != "9" else f"77777.{invented.replace('.', '')}.7"
    history = tuple(told(other, place) for other, place in others)
    text, _, missing = mark_unverified(around.format(name), known_in(history))
    assert name in missing
    assert "(unverified" in text
    assert (
        text.replace(" (unverified)", "").replace(f" (unverified: {name})", "") == around.format(name) or "run" in text
    )


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.lists(st.text(max_size=60), max_size=3))
def test_marks_are_the_only_addition(text, history):
    """For any text: removing the marks restores it, and a second run changes nothing."""
    known = known_in(tuple(Message(id=str(i), role="user", content=said) for i, said in enumerate(history)))
    once, _, missing = mark_unverified(text, known)
    if not missing:
        assert once == text
    assert mark_unverified(once, known)[0] == once


def test_of_a_long_history_only_new_text_is_read():
    """The patterns read each distinct piece of 10 MB once, and patterns that no name needs are not run."""
    known = known_in(HISTORY * 1000)
    assert len(known._pieces) == len(known_in(HISTORY)._pieces)
    assert mark_unverified("`load_config` is as it was", known) == ("`load_config` is as it was", 1, [])
    assert "_words" in vars(known)
    assert not {"_numbers", "_runs"} & set(vars(known))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40).map(lambda data: data * 9_000))
def test_a_long_text_is_read_in_slices_that_split_no_name(data):
    """The stream of another chat waits only as long as one slice takes."""
    slices = list(_slices(data))
    assert b"".join(slices) == data
    assert all(part.startswith(b" ") for part in slices[1:])
    assert all(len(part) <= 66_000 for part in slices) or b" " not in data
