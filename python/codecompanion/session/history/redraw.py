"""Tell the editor everything a chat's buffer shows: out of the log, then what is on its way (lesson 54).

The same whether a chat is opened, comes back into an empty buffer or is drawn again: the log has one drawing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codecompanion.errors import InputError
from codecompanion.model.history import LogEvent, MessageAdded
from codecompanion.session.history.entries import entries, pieces
from codecompanion.wire.events import Event, Redrawn, ReplyStarted, Restored

if TYPE_CHECKING:
    from codecompanion.session.session import Session

DELETED = "This chat is not in the history any more; it was deleted meanwhile."


async def redraw(session: Session) -> None:
    """Tell it all, in one step: nothing can come between what the log says and what is on its way.

    Raises:
        InputError: the chat was deleted meanwhile; nothing was told.
    """
    view, (entries_shown, events) = session.log.view, await _read(session)
    # Read again only for what was written meanwhile: what a reading lacks that began later is not in the log any more.
    while session.log.view is not view and session.log.view.last_seq > (events[-1].seq if events else 0):
        view, (entries_shown, events) = session.log.view, await _read(session)
    if not events and session.log.view.last_seq:
        raise InputError(DELETED)
    session.emit(Redrawn(chat=session.chat_id))
    session.context.show()
    session.context.show_marks()
    for piece in entries_shown:
        session.emit(piece)
    for event in _on_its_way(session, events):
        session.emit(event)
    session.show_meter()


async def _read(session: Session) -> tuple[list[Restored], Sequence[LogEvent]]:
    events = await session.log.events()
    return await asyncio.to_thread(restored, session.chat_id, events), events


def restored(chat_id: str, events: Sequence[LogEvent]) -> list[Restored]:
    """Return what the buffer shows of a log, in pieces, the newest first."""
    return [
        Restored(chat=chat_id, entries=shown, first=first, last=last) for shown, first, last in pieces(entries(events))
    ]


def _on_its_way(session: Session, events: Sequence[LogEvent]) -> list[Event]:
    """Return what has been shown and is not in the log yet: the reply so far, running tools, open questions."""
    found: list[Event] = []
    arrived = session.turn.arrived if session.turn is not None else None
    if arrived is not None:
        reply, message_id = arrived
        logged = {e.payload.message.id for e in events[-64:] if isinstance(e.payload, MessageAdded)}
        if message_id not in logged and not reply.is_blank:
            found.append(ReplyStarted(chat=session.chat_id, adapter=session.adapter_name, model=session.model))
            found += reply.as_events(session.chat_id)
    if session.round is not None:
        found += session.round.running
    return [*found, *session.desk.questions]
