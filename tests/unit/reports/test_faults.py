"""Faults: an edit needs text that was cleared (lesson 24)."""

from __future__ import annotations

import json

import pytest

from codecompanion.model.messages import Message, ToolCall, with_changes
from codecompanion.reports.faults import LineIndex, needed_texts

READ = Message(id="m0", role="tool", tool_call_id="r", content="1\tdef area(r):\n2\t    return 3 * r\n3\t\n")
CLEARED = with_changes(READ, content="[cleared]", edited=True)


def edit(arguments: object, text: str = "") -> Message:
    return Message(id="e", role="assistant", content=text, tool_calls=(ToolCall("c", "edit", json.dumps(arguments)),))


NEEDED = ("def area(r):", "return 3 * r")
OLD = "def area(r):\n    return 3 * r\n"


@pytest.mark.parametrize(
    "reply",
    [
        edit({"path": "a.py", "old_str": OLD, "new_str": "x"}),
        edit({"path": "a.py", "oldText": OLD, "newText": "x"}),
        edit({"file_path": "a.py", "old_string": OLD, "new_string": ""}),
        edit({"path": "a.py", "edits": [{"old_text": OLD, "new_text": "x"}]}),
        edit({"search": OLD, "replace": "x"}),
        edit(
            {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-def area(r):\n     return 3 * r\n+x\n*** End Patch"}
        ),
        Message(id="e", role="assistant", content=f"a.py\n<<<<<<< SEARCH\n{OLD}=======\nx\n>>>>>>> REPLACE\n"),
    ],
)
def test_an_edit_of_any_dialect_needs_the_lines_it_replaces(reply: Message) -> None:
    (lines,) = needed_texts(reply)
    assert set(NEEDED) <= set(lines)


@pytest.mark.parametrize("arguments", [{"command": "ls"}, {"search": "area"}, {"path": "a.py", "content": OLD}, []])
def test_an_edit_that_replaces_nothing_needs_nothing(arguments: object) -> None:
    assert needed_texts(edit(arguments)) == ()


def is_fault(recorded: list[Message], shown: list[Message], lines: tuple[str, ...] = NEEDED) -> bool:
    return LineIndex(recorded).is_fault(lines, len(recorded), {message.id: message for message in shown})


def test_text_in_view_is_not_a_fault_also_after_line_numbers() -> None:
    assert not is_fault([READ], [READ])


def test_cleared_text_is_a_fault() -> None:
    assert is_fault([READ], [CLEARED])
    assert is_fault([READ], [])


def test_text_that_never_existed_is_not_a_fault() -> None:
    assert not is_fault([READ], [CLEARED], ("something else",))


def test_a_read_after_the_clearing_restores_the_text() -> None:
    again = with_changes(READ, id="m1")
    assert not is_fault([READ, again], [CLEARED, again])


def test_later_messages_do_not_count() -> None:
    again = with_changes(READ, id="m1")
    index = LineIndex([READ, again])
    assert index.is_fault(NEEDED, 1, {"m0": CLEARED})


def test_text_in_a_summary_or_an_own_edit_is_not_a_fault() -> None:
    summary = Message(id="s", role="user", content=f"Files:\n{OLD}", tag="compact_summary")
    assert not is_fault([READ], [CLEARED, summary])
    written = edit({"path": "a.py", "content": OLD})
    assert not is_fault([READ, written], [CLEARED, written])


def test_adjacent_lines_must_stay_adjacent() -> None:
    apart = [Message(id=f"x{i}", role="user", content=line) for i, line in enumerate(NEEDED)]
    assert is_fault([*apart, READ], [*apart, CLEARED])
    assert not is_fault(apart, apart)
    assert is_fault(apart, apart[:1])


def test_part_of_a_line_is_found_in_the_view_and_missed_outside() -> None:
    assert not is_fault([READ], [READ], ("3 * r",))
    assert is_fault([READ], [CLEARED], ("3 * r",))
