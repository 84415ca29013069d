"""Restores one original message to its position in the view, with the messages it depends on (R-004, R-516).

Pure: it builds the change; `session.actions.view_edits` checks and logs it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.errors import InputError
from codecompanion.model.history import Insertion, LogEvent, MessageAdded
from codecompanion.model.invariants import with_partners
from codecompanion.model.messages import GO_ON_TAG, RULES_TAG, SUMMARY_TAG, Message, with_changes
from codecompanion.model.view import View


class Restoration(msgspec.Struct, frozen=True):
    """The changes that restore a message. `original` is the requested message."""

    original: Message
    replaced: tuple[Message, ...] = ()
    inserted: tuple[Insertion, ...] = ()

    @property
    def count(self) -> int:
        """Return the number of restored messages: a tool call and its results are restored together."""
        return len(self.replaced) + len(self.inserted)


def find(messages: Sequence[Message], item: str) -> Message | None:
    """Return the newest message with this message id or call id, or None."""
    named = (m for m in reversed(messages) if m.id == item or (m.role == "tool" and m.tool_call_id == item))
    return next(named, None)


def logged(events: Sequence[LogEvent]) -> list[Message]:
    """Return all messages of the log as they were written, in order."""
    return [event.payload.message for event in events if isinstance(event.payload, MessageAdded)]


def restoration(messages: Sequence[Message], view: View, item: str) -> Restoration:
    """Return the changes that restore the original of a message or call id; `messages` is the whole log.

    A message replaced in place is restored there; a summarised message is inserted after the summary. Either then
    counts as new, so that the next edit does not remove it again.

    Raises:
        InputError: the message does not exist or is unchanged.
    """
    original = find(messages, item)
    if original is None:
        if find(view.messages, item) is not None:
            raise InputError("Nothing to restore: this message is unchanged.")
        raise InputError(f"Nothing in this chat has the id {item!r}.")
    if original.tag in (RULES_TAG, GO_ON_TAG):
        raise InputError("Rules cannot be restored because they are read from files; /rules adds them again.")
    cycle = max(1, view.cycle)
    current = next((message for message in view.messages if message.id == original.id), None)
    if current is not None:
        if current.content == original.content:
            raise InputError("Nothing to restore: this message is unchanged.")
        return Restoration(original, (with_changes(original, cycle=cycle, pinned=current.pinned),))
    known = {message.id for message in view.messages}
    own = next(place for place, message in enumerate(messages) if message is original)
    together = with_partners(messages, frozenset({own}))
    back = [messages[place] for place in sorted(together) if messages[place].id not in known]
    anchor = _anchor(messages, view, back[0])
    return Restoration(
        original, (), tuple(Insertion(with_changes(message, cycle=cycle), after=anchor) for message in back)
    )


def _anchor(messages: Sequence[Message], view: View, first: Message) -> str:
    """Return the id of the message after which restored messages are inserted: after older messages and every summary.

    A provider does not see messages before its own summary.
    """
    places = {message.id: place for place, message in enumerate(messages)}
    own = places[first.id]
    anchor = ""
    for message in view.messages:
        if message.tag == SUMMARY_TAG or places.get(message.id, len(messages)) < own:
            anchor = message.id
    return anchor
