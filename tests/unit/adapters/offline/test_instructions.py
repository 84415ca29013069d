"""Instructions in plain words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.adapters.offline.instructions import plan

Round = list[tuple[str, dict[str, Any]]]


def rounds(text: str) -> list[Round]:
    return [[(step.tool, step.arguments) for step in steps] for steps in plan(text).rounds]


def read(path: str, first: int | None = None, last: int | None = None) -> tuple[str, dict[str, Any]]:
    lines = {} if first is None else {"start_line": first, "end_line": last or first}
    return "read_file", {"path": path, **lines}


def edit(old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "insert_edit", {"path": "a.txt", "old_text": old, "new_text": new}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("read lua/foo.lua", read("lua/foo.lua")),
        ("Read the file lua/foo.lua.", read("lua/foo.lua")),
        ("please open README.md!", read("README.md")),
        ("read lua/foo.lua lines 10-20", read("lua/foo.lua", 10, 20)),
        ("read lua/foo.lua, lines 10 to 20.", read("lua/foo.lua", 10, 20)),
        ("read lua/foo.lua line 7", read("lua/foo.lua", 7)),
        ("read lua/foo.lua:3-9", read("lua/foo.lua", 3, 9)),
        ("show me `a b.txt`", read("a b.txt")),
        ("read C:/x.txt", read("C:/x.txt")),
        ("look at ../x", read("../x")),
        ("search for foo", ("grep_search", {"query": "foo"})),
        ("search for foo() in lua/", ("grep_search", {"query": "foo()", "path": "lua/"})),
        ('grep for "needle in hay" in src', ("grep_search", {"query": "needle in hay", "path": "src"})),
        ("search for 'a; b'", ("grep_search", {"query": "a; b"})),
        ("find files *.py", ("file_search", {"pattern": "*.py"})),
        ("list all files matching src/**/*.lua", ("file_search", {"pattern": "src/**/*.lua"})),
        ("replace foo with bar in a.txt", edit("foo", "bar")),
        (
            'replace "a with b" by "" in a.txt',
            ("insert_edit", {"path": "a.txt", "old_text": "a with b", "new_text": ""}),
        ),
        ("in a.txt change foo to bar", ("insert_edit", {"path": "a.txt", "old_text": "foo", "new_text": "bar"})),
        (
            "In a.txt, replace `x = 1` with `x = 2`.",
            ("insert_edit", {"path": "a.txt", "old_text": "x = 1", "new_text": "x = 2"}),
        ),
        ("change 1 to 2 in a.txt", ("insert_edit", {"path": "a.txt", "old_text": "1", "new_text": "2"})),
        ("create hello.txt with Hello", ("create_file", {"path": "hello.txt", "content": "Hello\n"})),
        ("create file a.txt", ("create_file", {"path": "a.txt", "content": "\n"})),
        (
            "create a.py with:\n```python\ndef f():\n    return 'then; run x'\n```",
            ("create_file", {"path": "a.py", "content": "def f():\n    return 'then; run x'\n"}),
        ),
        ("write b.txt containing the text: two words", ("create_file", {"path": "b.txt", "content": "two words\n"})),
        ("run make test", ("run_command", {"command": "make test"})),
        ("run the command `ls; echo then done`", ("run_command", {"command": "ls; echo then done"})),
        ("run grep -n 'a b' x", ("run_command", {"command": "grep -n a b x"})),
        ("show diagnostics", ("get_diagnostics", {})),
        ("Check the diagnostics of lua/foo.lua", ("get_diagnostics", {"path": "lua/foo.lua"})),
        ("delete old.txt", ("delete_file", {"path": "old.txt"})),
    ],
)
def test_one_instruction_becomes_one_call(text: str, expected: tuple[str, dict[str, Any]]) -> None:
    """All forms in the help are understood, also within natural sentences."""
    assert rounds(text) == [[expected]]


def test_then_puts_each_step_into_its_own_round() -> None:
    """The second may need the first one's result."""
    text = "read a.txt, then search for x then replace x with y in a.txt and then run make"
    assert [[tool for tool, _ in calls] for calls in rounds(text)] == [
        ["read_file"],
        ["grep_search"],
        ["insert_edit"],
        ["run_command"],
    ]


@pytest.mark.parametrize("text", ["read a; search for x; find files *.c", "read a\nsearch for x\nfind files *.c"])
def test_read_only_steps_run_in_parallel(text: str) -> None:
    """The calls are sent in parallel in one reply, as a model would send them."""
    assert [[tool for tool, _ in calls] for calls in rounds(text)] == [["read_file", "grep_search", "file_search"]]


def test_a_changing_step_waits_for_its_turn() -> None:
    """A read after an edit must see the edit."""
    text = "- read a\n- replace x with y in a\n- read a\n- read b"
    assert [[tool for tool, _ in calls] for calls in rounds(text)] == [
        ["read_file"],
        ["insert_edit"],
        ["read_file", "read_file"],
    ]


def test_several_files_are_several_calls() -> None:
    """The calls are in one round."""
    assert rounds("read a.txt, b.txt and c.txt") == [[read("a.txt"), read("b.txt"), read("c.txt")]]


def test_and_before_a_verb_separates_steps() -> None:
    """An "and" inside a search term separates nothing."""
    assert rounds("read a.txt and search for b") == [[read("a.txt"), ("grep_search", {"query": "b"})]]
    assert rounds("search for salt and pepper") == [[("grep_search", {"query": "salt and pepper"})]]


def test_numbered_steps_are_steps() -> None:
    """As people write lists."""
    assert rounds("1. read a\n2) show diagnostics") == [[read("a"), ("get_diagnostics", {})]]


@pytest.mark.parametrize(
    "text",
    ["", "Hello", "Why does foo() return nil?", "then", ";;;", "replace x in a", "search for", "read"],
)
def test_other_text_is_not_an_instruction(text: str) -> None:
    """Nothing is guessed."""
    assert rounds(text) == []


def test_unknown_parts_are_reported() -> None:
    """The parts that were understood become calls, and the others are reported."""
    found = plan('read a.txt; dance with "me"')
    assert [[step.tool for step in steps] for steps in found.rounds] == [["read_file"]]
    assert found.not_understood == ("dance with me",)


@given(st.text(alphabet=st.sampled_from("read a.txt;\n`'\"then and in with to search for \ue000\ue0011")))
def test_any_text_yields_valid_calls(text: str) -> None:
    """Property: no text causes a crash or an empty argument that a schema would refuse, and none is slow to read."""
    for steps in plan(text).rounds:
        assert steps
        for step in steps:
            assert msgspec.json.encode(step.arguments)
            assert step.arguments.get("path", "x")
            assert step.arguments.get("query", "x")
            assert step.arguments.get("command", "x")


def test_a_long_text_is_read_quickly() -> None:
    """A pasted log must not hang the adapter: the patterns do not backtrack over it."""
    for text in (
        "read " + "a, " * 20_000,
        "in x change " + "to " * 20_000,
        "replace " + "with " * 20_000,
        "`" * 50_001,
    ):
        plan(text)
