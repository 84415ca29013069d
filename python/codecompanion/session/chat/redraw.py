"""Sends the whole content of a chat's buffer to the editor: the log, then work in progress (lesson 54).

Used when a chat is opened, reappears in an empty buffer or is redrawn; the same log is always drawn the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from codecompanion.errors import InputError
from codecompanion.model.history import LogEvent, MessageAdded
from codecompanion.session.chat.buffer_entries import entries, pieces
from codecompanion.session.chat.chat import Chat
from codecompanion.wire.events import Entry, Event, Redrawn, ReplyStarted, Restored

_ALONG = ("gathered", "updated", "mentioned")
"""Kinds of entries whose size is shown converted to the model's tokens."""
DELETED = "This chat was deleted and is no longer in the history."


async def redraw(chat: Chat) -> None:
    """Send the whole chat in one step, so that no event comes between the log and work in progress.

    Raises:
        InputError: the chat was deleted meanwhile; nothing was sent.
    """
    view, (entries_shown, events) = chat.log.view, await _read(chat)
    # Read again only if something was written meanwhile. Newer events missing from the second read were deleted.
    while chat.log.view is not view and chat.log.view.last_seq > (events[-1].seq if events else 0):
        view, (entries_shown, events) = chat.log.view, await _read(chat)
    if not events and chat.log.view.last_seq:
        raise InputError(DELETED)
    chat.stop_sending_older()
    chat.emit(Redrawn(chat=chat.chat_id))
    chat.context.show()
    chat.context.show_marks()
    for piece in entries_shown:
        chat.emit(piece)
    for event in _on_its_way(chat, events):
        chat.emit(event)
    chat.show_meter()


async def _read(chat: Chat) -> tuple[list[Restored], Sequence[LogEvent]]:
    events = await chat.log.events()
    return await asyncio.to_thread(restored, chat.chat_id, events, chat.meter.scaled), events


def restored(chat_id: str, events: Sequence[LogEvent], scaled: Callable[[int], int]) -> list[Restored]:
    """Return the blocks of a log as several events, newest blocks first.

    `scaled` converts an estimate to the model's tokens.
    """
    drawn = with_sizes(entries(events), scaled)
    return [Restored(chat=chat_id, entries=shown, first=first, last=last) for shown, first, last in pieces(drawn)]


def with_sizes(shown: Sequence[Entry], scaled: Callable[[int], int]) -> list[Entry]:
    """Return the entries with the sizes to show; `scaled` converts an estimate to the model's tokens."""
    return [
        msgspec.structs.replace(entry, tokens=scaled(entry.tokens)) if entry.kind in _ALONG else entry
        for entry in shown
    ]


def _on_its_way(chat: Chat, events: Sequence[LogEvent]) -> list[Event]:
    """Return events for content that is shown but not logged yet: the partial reply, running tools, open questions."""
    found: list[Event] = []
    if chat.arrived is not None:
        reply, message_id = chat.arrived
        logged = {e.payload.message.id for e in events[-64:] if isinstance(e.payload, MessageAdded)}
        if message_id not in logged and not reply.is_blank:
            found.append(ReplyStarted(chat=chat.chat_id, adapter=chat.adapter_name, model=chat.model))
            found += reply.as_events(chat.chat_id)
    if chat.round is not None:
        found += chat.round.running
    return [*found, *chat.desk.questions]
