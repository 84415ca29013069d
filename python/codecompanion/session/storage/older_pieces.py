"""Sends the older blocks of a long stored chat once the chat is usable.

The newest blocks are already shown (`first_piece`). A message that the user sends immediately has priority, because
drawing a whole log takes as long as the request for the message. The editor inserts the older blocks above everything
already drawn, whenever they arrive.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from codecompanion.model.history import LogEvent
from codecompanion.session.chat.redraw import redraw, restored
from codecompanion.session.session import Session
from codecompanion.session.storage.first_piece import pieces_above
from codecompanion.store.log.tail_state import TailState
from codecompanion.wire.events import Restored

_log = logging.getLogger(__name__)
TURN_LIMIT_S = 1.0
"""Maximum time in seconds that the older blocks wait for a turn that began immediately."""


async def send_older_pieces(session: Session, events: Sequence[LogEvent], shown: Restored, *, read_only: bool) -> None:
    """Send the blocks above `shown`; if `shown` does not match the end of the log, redraw the chat.

    Raises:
        CodeCompanionError: the chat had to be redrawn, but could not be read.
    """
    chat_id = session.chat_id
    await asyncio.sleep(0)  # start a message that waited for the chat to open
    if session.task is not None:
        await asyncio.wait({session.task}, timeout=TURN_LIMIT_S)
    pieces = await asyncio.to_thread(restored, chat_id, events, session.meter.scaled)
    above = pieces_above(pieces, shown)
    if above is not None:
        for piece in above:
            session.emit(piece)
        return
    _log.warning("the end of chat %s did not match its log; redrawing it", chat_id)
    await redraw(session)
    if not read_only:
        state = await asyncio.to_thread(TailState().after, events)
        session.services.store.save_tail_state(chat_id, state)
