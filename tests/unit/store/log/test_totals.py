"""The totals of a chat in the list of stored chats."""

from __future__ import annotations

import pytest

from codecompanion.model.history import EventPayload, PolicyEvent, TitleSet, TurnEnded
from codecompanion.store.log.totals import Totals


@pytest.mark.parametrize(
    ("payload", "is_activity"),
    [
        (TurnEnded(turn_id="t", reason="done"), True),
        (TitleSet(title="found by the model", by_user=False), True),
        (TitleSet(title="mine", by_user=True), False),
        (PolicyEvent(name="conversation_snapshot"), False),
    ],
)
def test_a_chat_becomes_newer_only_by_its_use(payload: EventPayload, is_activity: bool) -> None:
    """A snapshot is written when a chat is closed, so an older chat would be listed above the last used one."""
    totals = Totals(updated=1.0)
    totals.count(payload, 2.0)
    assert totals.updated == (2.0 if is_activity else 1.0)
    assert totals.last_seq == 1
