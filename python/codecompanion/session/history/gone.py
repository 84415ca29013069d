"""Which messages of a chat are not in its view any more, and what took them out: a projection of the log alone.

The buffer folds what left the request and shows the rest as it is sent (lesson 54); `/clear` begins a new page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codecompanion.model.history import LogEvent, MessageAdded, ViewChanged
from codecompanion.model.messages import GO_ON_TAG, SUMMARY_TAG, Message, is_typed_by_user
from codecompanion.model.view import View, answer_turn, apply_change, is_of_answer

WIPED = "cleared"
"""What `/clear` took out is not drawn at all."""


def take_out(gone: dict[str, str], change: ViewChanged) -> None:
    """Bring `gone`, the messages that are out of the view by kind of change, to where it is after one more change."""
    gone.update(dict.fromkeys(change.removed, change.kind))
    for insertion in change.inserted:
        gone.pop(insertion.message.id, None)


def gone_from(events: Sequence[LogEvent], undone: Sequence[str]) -> dict[str, str]:
    """Return the messages of a log that are not in its view, each with the kind of change that took it out."""
    gone: dict[str, str] = {}
    skipped, taken_back = frozenset(undone), turns_taken_back(events, undone)
    for event in events:
        match event.payload:
            case ViewChanged() as change if change.change_id not in skipped:
                take_out(gone, change)
            case MessageAdded(message=message) if message.turn_id in taken_back and is_of_answer(message):
                gone[message.id] = "regenerated"
            case _:
                pass
    return gone


def turns_taken_back(events: Sequence[LogEvent], undone: Sequence[str]) -> frozenset[str]:
    """Return the turns of new answers that do not count because their change was undone."""
    if not undone:
        return frozenset()
    changes = (event.payload for event in events if isinstance(event.payload, ViewChanged))
    return frozenset(answer_turn(change) for change in changes if change.change_id in undone) - {""}


def by_kind(gone: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the messages by the kind of change that took them out; what was wiped is nowhere drawn."""
    found: dict[str, list[str]] = {}
    for message_id, kind in gone.items():
        if kind != WIPED:
            found.setdefault(kind, []).append(message_id)
    return {kind: tuple(ids) for kind, ids in found.items()}


def pages(events: Sequence[LogEvent], undone: Sequence[str]) -> tuple[int, frozenset[str]]:
    """Return the place of the newest `/clear` that counts (-1: there is none), and what stands before it unseen.

    A message that has come back since is drawn again, also when it is gone once more.
    """
    skipped, page = frozenset(undone), -1
    gone: dict[str, str] = {}
    unseen: set[str] = set()
    for place, event in enumerate(events):
        change = event.payload
        if not isinstance(change, ViewChanged) or change.change_id in skipped:
            continue
        take_out(gone, change)
        if change.kind == WIPED:
            page, unseen = place, set(gone)
        unseen.difference_update(insertion.message.id for insertion in change.inserted)
    return page, frozenset(unseen)


def is_drawn(message: Message) -> bool:
    """Return whether the message has lines of its own in the buffer; attachments are in the context block."""
    if message.role == "tool" or is_typed_by_user(message):
        return True
    return message.role == "assistant" and message.compaction is None and bool(message.text.strip())


def summary_ids(change: ViewChanged) -> tuple[str, ...]:
    """Return the messages that a compaction put in the place of others."""
    return tuple(i.message.id for i in change.inserted if i.message.tag == SUMMARY_TAG or i.message.compaction)


def place_of_card(messages: Sequence[Message], change: ViewChanged) -> str:
    """Return the message above which the card of a compaction stands: the first drawn one that follows it in the view.

    `messages` is the view before the change. "" when nothing that is drawn follows: the card is the newest.
    """
    after = apply_change(View(messages=tuple(messages)), change).messages
    new = frozenset(insertion.message.id for insertion in change.inserted)
    places = [place for place, message in enumerate(after) if message.id in new and message.tag != GO_ON_TAG]
    rest = after[places[-1] + 1 :] if places else ()
    return next((message.id for message in rest if is_drawn(message)), "")
