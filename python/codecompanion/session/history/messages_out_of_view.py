"""Finds, from the log alone, the messages that left a chat's view and the kind of change that removed each.

The buffer folds messages that left the request and shows the rest as sent (lesson 54); `/clear` starts a new page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codecompanion.model.history import LogEvent, MessageAdded, ViewChanged
from codecompanion.model.messages import GO_ON_TAG, SUMMARY_TAG, Message, is_typed_by_user
from codecompanion.model.view import View, answer_turn, apply_change, is_of_answer

WIPED = "cleared"
"""The kind of the change made by `/clear`; messages removed by it are not drawn at all."""


def take_out(gone: dict[str, str], change: ViewChanged) -> None:
    """Apply one more change to `gone`, which maps each removed message to the kind of change that removed it."""
    gone.update(dict.fromkeys(change.removed, change.kind))
    for insertion in change.inserted:
        gone.pop(insertion.message.id, None)


def removed_kinds(events: Sequence[LogEvent], undone: Sequence[str]) -> dict[str, str]:
    """Return the messages of a log that are not in its view, each with the kind of change that removed it."""
    gone: dict[str, str] = {}
    skipped, undone_answers = frozenset(undone), undone_turns(events, undone)
    for event in events:
        match event.payload:
            case ViewChanged() as change if change.change_id not in skipped:
                take_out(gone, change)
            case MessageAdded(message=message) if message.turn_id in undone_answers and is_of_answer(message):
                gone[message.id] = "regenerated"
            case _:
                pass
    return gone


def undone_turns(events: Sequence[LogEvent], undone: Sequence[str]) -> frozenset[str]:
    """Return the ids of the turns that regenerated an answer and were then undone."""
    if not undone:
        return frozenset()
    changes = (event.payload for event in events if isinstance(event.payload, ViewChanged))
    return frozenset(answer_turn(change) for change in changes if change.change_id in undone) - {""}


def by_kind(gone: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the removed messages by kind of change, without those removed by `/clear`."""
    found: dict[str, list[str]] = {}
    for message_id, kind in gone.items():
        if kind != WIPED:
            found.setdefault(kind, []).append(message_id)
    return {kind: tuple(ids) for kind, ids in found.items()}


def pages(events: Sequence[LogEvent], undone: Sequence[str]) -> tuple[int, frozenset[str]]:
    """Return the index of the newest `/clear` not undone (-1 = none), and the ids of the messages it hides.

    A message restored afterwards is drawn, even if it was removed again.
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
    """Return whether the message has its own lines in the buffer; attachments are in the context block."""
    if message.role == "tool" or is_typed_by_user(message):
        return True
    return message.role == "assistant" and message.compaction is None and bool(message.text.strip())


def summary_ids(change: ViewChanged) -> tuple[str, ...]:
    """Return the ids of the summaries that a compaction inserted."""
    return tuple(i.message.id for i in change.inserted if i.message.tag == SUMMARY_TAG or i.message.compaction)


def place_of_card(messages: Sequence[Message], change: ViewChanged) -> str:
    """Return the id of the message below a compaction's card: the first drawn message after the summary in the view.

    `messages` is the view before the change. Returns "" if no drawn message follows, because the card is then the
    newest entry.
    """
    after = apply_change(View(messages=tuple(messages)), change).messages
    new = frozenset(insertion.message.id for insertion in change.inserted)
    places = [place for place, message in enumerate(after) if message.id in new and message.tag != GO_ON_TAG]
    rest = after[places[-1] + 1 :] if places else ()
    return next((message.id for message in rest if is_drawn(message)), "")
