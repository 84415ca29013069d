"""Noise in a chat is not quoted, and is neither a request nor a source of names (R-431, lesson 11)."""

from __future__ import annotations

import json

import pytest

from codecompanion.context.ledger.facts import decisions_in, gather
from codecompanion.context.ledger.goal import is_usable_goal
from codecompanion.context.ledger.ledger import summarise
from codecompanion.context.message_facts.name_patterns import PATH
from codecompanion.context.message_facts.noise import is_noise, is_pasted, without_examples
from codecompanion.context.summary_text.sections import load_schema, parse_sections
from codecompanion.counting.tokens import estimate_text
from codecompanion.model.messages import ToolCall
from tests.unit.context.builders import assistant, chat, tool, user

CW_9 = load_schema("cw_9")


def section(messages, role, schema=CW_9):
    """Return one section of the ledger of these messages."""
    return parse_sections(summarise(messages, 3000, estimate_text, schema.name), schema).body(schema.number_of(role))


@pytest.mark.parametrize(
    "text",
    [
        "/exit", "/ex", "/undo", " /diff\n/undo ", "/add src/app.py tests/test_app.py", "/model vendor/model-3.5",
        "/test pytest tests/test_app.py -k test_one", "/clear\n/drop old\n/drop tests/test_app.py", "thanks", "Thanks!",
        "ok", "ok, thanks a lot!", "wow", "yo", "ls", "many thanks.", "danke", "<command-name>/clear</command-name>\n"
        "<command-message>clear</command-message>", "<local-command-stdout>done</local-command-stdout>",
        "Thank you for your help! Have a great day.\n\n###STOP###",
        "Thanks for all your help today. That's everything!", "goodbye",
        "Thank you so much! That should be all for now.",
        "That's everything I needed to do today. ###STOP###",
    ],
)  # fmt: skip
def test_short_noise_is_recognised(text):
    """`/exit`, "thanks" and command XML are not requests."""
    assert is_noise(text)
    assert not is_usable_goal(text)


@pytest.mark.parametrize(
    "text",
    [
        "/ask how does the parser work?", "/clear\nuse tabs in every file", "thanks, but keep the public one",
        "ok, start with the parser", "/etc/hosts must not change", "no", "yes", "use tabs", "/ask 为什么", "fix it",
        "don't", "/compact keep the rule about tabs", "", "That should be all tabs for now.",
        "have a great day in the title",
        "that's all wrong", "stop",
    ],
)  # fmt: skip
def test_the_users_wishes_are_not_noise(text):
    """R-431: in doubt the words are kept."""
    assert not is_noise(text)


@pytest.mark.parametrize("text", ["$ ls\na.py\nb.py", "~/work (main)\n➜ make", "E   AssertionError: x"])
def test_pasted_output_is_quoted_but_is_not_a_request(text):
    """The user may want it looked at, so it stays among the user messages."""
    assert not is_noise(text)
    assert is_pasted(text)
    assert not is_pasted(f"{text}\n\nwhy is the second file still there")
    assert not is_pasted(f"why is this so?\n{text}")


def test_noise_is_not_quoted():
    """This applies to every schema and to any position in the chat."""
    messages = chat(
        user("/add src/a.py"), user("rename load to read"), assistant("done"), user("thanks"), user("/exit")
    )
    for schema in (CW_9, load_schema("cc_9")):
        assert section(messages, "user_messages", schema) == "> rename load to read"


@pytest.mark.parametrize("last", ["/exit", "thanks!", "yes", "$ find .\n./a\n./b", "/undo\n/undo"])
def test_the_latest_request_is_the_latest_substantive_one(last):
    messages = chat(user("build a parser"), assistant("done"), user("now write its tests"), assistant("ok"), user(last))
    assert section(messages, "request").split("\n")[-2:] == ["Latest request:", "> now write its tests"]


def test_noise_leaves_nothing_open():
    """`/exit` needs no answer."""
    messages = chat(user("build a parser"), assistant("It is built."), user("/exit"))
    assert section(messages, "pending") == ""
    assert section(messages, "next_step") == ""
    unanswered = chat(user("build a parser"), assistant("It is built."), user("now the tests"), user("/exit"))
    assert "> now the tests" in section(unanswered, "next_step")


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("The fix is in src/utils/config.ts, where paths moved.",
         ["The fix is in src/utils/config.ts, where paths moved."]),
        ("I see that the issue is in `sqf_list` of `sqfreetools.py`, line 3.",
         ["I see that the issue is in `sqf_list` of `sqfreetools.py`, line 3."]),
        ("Let us see `x.fit_predict()`, the issue is in how we handle the last step.",
         ["Let us see `x.fit_predict()`, the issue is in how we handle the last step."]),
        ("## Root Cause Analysis of the whole bad thing", []),
        ("The fix is:", []),
        ("The issue is in how two methods of this class work:\n```\nx\n```", []),
        ("It turns out.", []),
        ("First. The root cause is a cache that is never emptied. Then more.",
         ["The root cause is a cache that is never emptied."]),
    ],
)  # fmt: skip
def test_decisions_are_complete_substantive_sentences(said, found):
    """No path is cut at a dot, and no empty decision is listed."""
    assert decisions_in(said) == found


def test_a_null_argument_is_not_a_file():
    """`null (edited)`."""
    call = ToolCall("c", "str_replace_editor", json.dumps({"command": "create", "path": "null", "file": "None"}))
    messages = chat(user("go"), assistant("x", ("d", "edit")), tool("d", "ok"))
    messages = (*messages, chat(assistant())[0].__class__(id="n", role="assistant", tool_calls=(call,)))
    assert set(gather(messages).files) == {"a.py"}


@pytest.mark.parametrize(
    "text", ["r = response.json()", "np.log(x)", "import django.utils.html", "docutils.parsers.rst too"]
)
def test_calls_and_modules_are_not_files(text):
    assert gather(chat(user("go"), assistant(text))).files == {}


@pytest.mark.parametrize(
    "path", ["Dockerfile.dev", "LICENSE.MIT", "src/Makefile.am", "a.test.ts", "x/y.d.ts", ".github/ci.yml", "main.c"]
)
def test_a_path_is_not_cut_at_a_dot(path):
    assert PATH.findall(f"see {path}, `{path}` and {path}. Then {path}(12): error") == [path] * 4


@pytest.mark.parametrize(
    "text",
    [
        "You may call things as you like, e.g. do_thing in demo/thing.py. Now to work.",
        "For example, do_thing in demo/thing.py would do.",
        "It looks like this, for example:\n```python\ndo_thing('demo/thing.py')\n```\nNow to work.",
        "--- DEMONSTRATION ---\nedit demo/thing.py, do_thing\n--- END OF DEMONSTRATION ---\nNow to work.",
        "<example>do_thing in demo/thing.py</example>",
    ],
)
def test_names_in_examples_are_not_names_in_the_work(text):
    """Names that occur only in examples, written by the user or the model, are not listed."""
    for messages in (chat(user(text), assistant("x")), chat(user("go"), assistant(text))):
        facts = gather(messages)
        assert (facts.files, facts.names) == ({}, {}), text
    seen = gather(chat(user(text), assistant("I open demo/thing.py and call do_thing.")))
    assert (set(seen.files), set(seen.names)) == ({"demo/thing.py"}, {"do_thing"})


def test_the_sentence_after_an_example_counts():
    assert without_examples("e.g. a.b is one. load_config is real.").strip() == "load_config is real."


@pytest.mark.parametrize("mark", ["<example>", "--- DEMONSTRATION ---\n"])
def test_an_unclosed_mark_hides_nothing(mark):
    """Each mark would cause a search through all the text after it: with this many, that would take hours."""
    text = mark * 100_000
    assert without_examples(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <example>x</example> b <EXAMPLES>y</examples> c", "a \n b \n c"),
        ("<example><examples>x</example>y</examples>", "\ny</examples>"),
        ("<example>a</examples> <examples>b</examples> c", "<example>a</examples> \n c"),
        ("</example>a<example>b<example>c</example>d", "</example>a\nd"),
        ("---DEMONSTRATION---\n<example>\n---END OF DEMONSTRATION---\nb</example>", "\n\nb</example>"),
        ("--- DEMONSTRATION ---\na </example>", "--- DEMONSTRATION ---\na </example>"),
    ],
)
def test_an_example_ends_at_the_next_mark_of_its_kind(text, left):
    assert without_examples(text) == left
