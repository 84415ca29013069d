"""The file changes that currently count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codecompanion.model.history import FileChangeEnded, FileChangeStarted, LogEvent, MessageAdded, TurnStarted
from codecompanion.model.messages import Message, ToolCall
from codecompanion.session.files.change_list import changes_of


def log(*payloads) -> list[LogEvent]:
    """Return a log of these payloads."""
    return [LogEvent(seq, float(seq), payload) for seq, payload in enumerate(payloads, 1)]


def change(change_id: str, *reverts: str, state: str = "written"):
    """Return the events of one change."""
    began = FileChangeStarted(change_id=change_id, path="/a", name="a", call_id=f"c{change_id}", reverts=reverts)
    return began, FileChangeEnded(change_id=change_id, state=state)  # type: ignore[arg-type]


def test_a_change_knows_its_turn_its_question_and_its_tool() -> None:
    calls = Message(id="r", role="assistant", content="", tool_calls=(ToolCall("c1", "insert_edit", "{}"),))
    asked = MessageAdded(message=Message(id="u", role="user", content="do\nit"))
    (found,) = changes_of(log(TurnStarted(turn_id="t", cycle=3), asked, MessageAdded(message=calls), *change("1")))
    assert (found.turn, found.question, found.tool, found.state) == (3, "do it", "insert_edit", "written")


def test_failed_changes_are_left_out_and_unfinished_ones_may_have_been_made() -> None:
    failed, interrupted = change("1", state="failed"), change("2")[:1]
    assert [(found.id, found.state) for found in changes_of(log(*failed, *interrupted))] == [("2", "interrupted")]


@given(st.lists(st.integers(0, 20), max_size=20))
def test_reverting_a_revert_reapplies_the_change(targets: list[int]) -> None:
    """Compared with the definition: a change counts unless a revert that itself counts names it; the newest decides."""
    payloads = [*change("0")]
    reverts: dict[int, int] = {}
    for number, target in enumerate(targets, 1):
        reverts[number] = target % number
        payloads += change(str(number), str(target % number))
    found = {int(one.id): one.reverted for one in changes_of(log(*payloads))}
    for number, is_reverted in found.items():
        by = [other for other, target in reverts.items() if target == number]
        if not by:
            assert not is_reverted
        elif len(by) == 1:
            assert is_reverted is not found[by[0]]
