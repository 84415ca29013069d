"""Repairs a stored chat after a crash, and finds its model and policy (lessons 35, 36, 49).

`repairs` returns the events that must be appended before anything else happens; it is pure.
`session.chat.buffer_entries` defines what the buffer shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codecompanion.model import history
from codecompanion.model.messages import Message, with_changes
from codecompanion.model.view import View, append, open_tool_calls
from codecompanion.placeholders import INTERRUPTED


def repairs(
    events: Sequence[history.LogEvent],
    view: View,
    partial: str,
    new_id: Callable[[], str],
    now: float,
    count: Callable[[Message], int],
) -> list[history.EventPayload]:
    """Return the events that an interrupted host did not write.

    A partial reply is kept and marked as truncated, open calls get an "interrupted" result, and open compactions and
    turns are ended. A log that ended cleanly needs no events. `count` returns the tokens of a message.
    """
    found: list[history.EventPayload] = []
    turn = _open_turn(events)
    if partial.strip() and turn is not None:
        message = Message(
            id=new_id(), role="assistant", content=partial, cycle=turn.cycle, turn_id=turn.turn_id, cut=True, ts=now
        )
        if not view.open_calls:
            message = with_changes(message, tokens=count(message))
            found.append(history.MessageAdded(message=message))
            view = append(view, message)
    for call in open_tool_calls(view):
        newest = next(message for message in reversed(view.messages) if message.tool_calls)
        result = Message(
            id=new_id(), role="tool", content=INTERRUPTED, tool_call_id=call.id, is_error=True,
            cycle=newest.cycle, turn_id=newest.turn_id, ts=now,
        )  # fmt: skip
        found.append(history.MessageAdded(message=with_changes(result, tokens=count(result))))
    ended = {e.payload.compaction_id for e in events if isinstance(e.payload, history.CompactionFailed)}
    ended |= {e.payload.change_id for e in events if isinstance(e.payload, history.ViewChanged)}
    for event in events:
        began = event.payload
        if isinstance(began, history.CompactionStarted) and began.compaction_id not in ended:
            found.append(history.CompactionFailed(compaction_id=began.compaction_id, reason="interrupted"))
            if began.failed_event:
                fields = {"reason": "interrupted", "estimated_request_tokens": began.tokens_before}
                named = history.PolicyEvent(name=began.failed_event, fields=fields, compaction_id=began.compaction_id)
                found.append(named)
    closed = {e.payload.change_id for e in events if isinstance(e.payload, history.FileChangeEnded)}
    for event in events:
        if isinstance(event.payload, history.FileChangeStarted) and event.payload.change_id not in closed:
            found.append(history.FileChangeEnded(change_id=event.payload.change_id, state="interrupted"))
    if turn is not None:
        found.append(history.TurnEnded(turn_id=turn.turn_id, reason="interrupted"))
    return found


def _open_turn(events: Sequence[history.LogEvent]) -> history.TurnStarted | None:
    """Return the last turn if it has not ended, else None."""
    for event in reversed(events):
        if isinstance(event.payload, history.TurnEnded):
            return None
        if isinstance(event.payload, history.TurnStarted):
            return event.payload
    return None


def model_of(events: Sequence[history.LogEvent]) -> tuple[str, str]:
    """Return the last adapter and model of the chat."""
    for event in reversed(events):
        if isinstance(event.payload, history.ModelSet | history.ChatCreated):
            return event.payload.adapter, event.payload.model
    return "", ""


def policy_of(events: Sequence[history.LogEvent]) -> str:
    """Return the chat's last chosen policy, or "" if it follows the configuration."""
    return next(
        (event.payload.policy for event in reversed(events) if isinstance(event.payload, history.PolicySet)), ""
    )
