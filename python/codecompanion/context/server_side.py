"""Applies a provider's own compaction to the view (R-534, R-537, R-539…R-542, R-551).

The provider's block replaces everything before it, as one message tagged like our own summaries. Protected messages
(rules, pinned) stay and are sent again after the block, byte-identical (lesson 10), and so are the user's words that
are being answered. A block is valid only while its provider compacts: for any other provider the view is projected
without it, from the full history (R-542).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from codecompanion.context.work import Messages, Work
from codecompanion.model.history import LogEvent, ViewChanged
from codecompanion.model.invariants import with_partners
from codecompanion.model.messages import (
    SUMMARY_TAG,
    CompactionPart,
    Message,
    is_protected,
    is_typed_by_user,
    with_changes,
)

SMALLEST_THRESHOLD = 50_000
"""Smallest compaction threshold that both providers accept (R-536, R-539)."""


def threshold(compact_at: int | None, window: int, reserve: int) -> int:
    """Return the size at which the provider compacts, or 0 if compaction is off or the window is too small."""
    if compact_at is None:
        return 0
    wanted = max(SMALLEST_THRESHOLD, compact_at)
    return wanted if wanted <= window - reserve else 0


def split_for_compaction(messages: Messages) -> tuple[Messages, Messages]:
    """Return the messages that the provider summarises, and the unanswered ones that follow its block (R-551)."""
    from codecompanion.context.selection.select_window import first_pending  # not needed at startup

    pending = first_pending(messages)
    return messages[:pending], messages[pending:]


def replace_by_block(messages: Messages, part: CompactionPart, count: Callable[[Message], int], block: Message) -> Work:
    """Return the view with `part` in place of the summarised messages; `block` supplies id, cycle and time."""
    head, pending = split_for_compaction(messages)
    running = frozenset(message.id for message in _running_request(head))
    protected = frozenset(place for place, message in enumerate(head) if is_protected(message))
    places = with_partners(head, protected)
    kept = tuple(message for place, message in enumerate(head) if place in places)
    request = tuple(m for place, m in enumerate(head) if m.id in running and place not in places)
    summary = with_changes(block, role="assistant", tag=SUMMARY_TAG, content=(part,))
    summary = with_changes(summary, tokens=count(summary))
    stays = {message.id for message in (*kept, *request)}
    removed = tuple(message for message in head if message.id not in stays)
    return Work(
        before=messages,
        messages=(*kept, summary, *request, *pending),
        removed=removed,
        pending=pending,
        summary=part.text,
    )


def _running_request(head: Messages) -> list[Message]:
    """Return the user's request that is being answered: everything typed since the last finished reply."""
    from codecompanion.context.selection.running_turn import is_answering  # not needed at startup

    if not is_answering(head):
        return []
    typed: list[Message] = []
    for message in reversed(head):
        if is_typed_by_user(message):
            typed.append(message)
        elif message.tag == SUMMARY_TAG or (message.role == "assistant" and not message.tool_calls and typed):
            break
    return typed


def live_blocks(messages: Iterable[Message]) -> list[Message]:
    """Return the messages that contain a provider's compaction."""
    return [message for message in messages if message.compaction is not None]


def changes_that_inserted(events: Sequence[LogEvent], ids: frozenset[str]) -> list[str]:
    """Return the ids of the changes that inserted these messages into the view."""
    return [
        event.payload.change_id
        for event in events
        if isinstance(event.payload, ViewChanged) and any(i.message.id in ids for i in event.payload.inserted)
    ]
