"""Draws the newest blocks of a long chat first, using only the end of its log. Pure.

`buffer_entries` draws these blocks as it draws a whole log, beginning at the start of a turn. They are returned only if
no earlier event can change them: the targets of undos, reverts and cards must be among the given events.
"""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.model.history import ChangeUndone, LogEvent, MessageAdded, TurnStarted, ViewChanged
from codecompanion.model.messages import is_typed_by_user
from codecompanion.session.chat.buffer_entries import FIRST_PIECE, Before, entries
from codecompanion.store.log.tail_state import TailState
from codecompanion.wire.events import Entry

_BELOW_QUESTION = ("gathered", "updated", "mentioned", "note")


def newest_entries(events: Sequence[LogEvent], state: TailState, count: int = FIRST_PIECE) -> tuple[Entry, ...] | None:
    """Return the `count` newest blocks of a log that ends with these events, or None if it needs more events.

    `state` is the tail state of the whole log.
    """
    began = next((at for at, event in enumerate(events) if _begins_turn(event)), None)
    if began is None:
        return None
    tail = events[began:]
    before = _before(tail, state)
    if before is None or not _is_closed(tail):
        return None
    shown = entries(tail, before)
    return tuple(shown[-count:]) if len(shown) - count >= _sure_from(shown) else None


def _sure_from(shown: Sequence[Entry]) -> int:
    """Return the first position that cannot depend on context logged before the first of these questions."""
    first = next((at for at, entry in enumerate(shown) if entry.kind == "user"), 0)
    below = range(first + 1, len(shown))
    return next((at for at in below if shown[at].kind not in _BELOW_QUESTION), len(shown))


def _begins_turn(event: LogEvent) -> bool:
    """Return whether a turn begins here, so that no tool call is open before it."""
    return isinstance(event.payload, TurnStarted) and event.payload.turn_id != ""


def _before(tail: Sequence[LogEvent], state: TailState) -> Before | None:
    """Return the state before these events, or None if the model at that point is not known."""
    chosen = next((one for one in reversed(state.models) if one.seq < tail[0].seq), None)
    if chosen is None:
        return None
    typed = sum(isinstance(e.payload, MessageAdded) and is_typed_by_user(e.payload.message) for e in tail)
    return Before(state.typed - typed, chosen.adapter, chosen.model)


def _is_closed(tail: Sequence[LogEvent]) -> bool:
    """Return whether these events contain all that they refer to: undone changes, messages followed by cards."""
    changes: set[str] = set()
    messages: set[str] = set()
    turns: set[str] = set()
    for event in tail:
        match event.payload:
            case TurnStarted(turn_id=turn_id):
                turns.add(turn_id)
            case MessageAdded(message=message):
                messages.add(message.id)
                if message.role != "user" and message.turn_id not in turns:
                    return False  # its turn began earlier
            case ViewChanged() as change:
                changes.add(change.change_id)
                above = change.report.before
                if change.kind == "compacted" and (above is None or (above and above not in messages)):
                    return False
            case ChangeUndone(change_id=change_id) if change_id not in changes:
                return False
            case _:
                pass
    return True
