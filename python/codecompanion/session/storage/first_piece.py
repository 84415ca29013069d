"""Shows the newest blocks of a long stored chat before its log is read, in time independent of the log's length.

The blocks are compared with the whole log afterwards; if they differ, the chat is redrawn from the log.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.model.view import project
from codecompanion.session.chat.newest_entries import newest_entries
from codecompanion.session.services import Services
from codecompanion.session.storage.resume import repairs
from codecompanion.store.files.checkpoints import file_name
from codecompanion.store.log.tail_state import TailState
from codecompanion.wire.events import Entry, Restored

READ = (200, 400, 1_600, 6_400)
"""Numbers of newest events to read, tried in turn until they suffice; shorter logs are read whole."""
PAINT_S = 0.03
"""Delay in seconds before the whole log is read, so that the newest blocks reach the editor first (both need the GIL).
"""


class Newest(msgspec.Struct, frozen=True):
    """The newest blocks of a chat, and the state at the end of its log."""

    entries: tuple[Entry, ...]
    state: TailState


def read_newest(services: Services, chat_id: str) -> Newest | None:
    """Return the newest blocks of a long chat that ended cleanly, or None if the whole log must be read.

    Raises:
        StoreError: the store cannot be read.
    """
    store, keeping = services.store, services.keeping
    checkpoint_seq = keeping.checkpoints.newest_seq_of(file_name(chat_id)) if keeping is not None else 0
    for limit in READ:
        tail = store.read_tail(chat_id, limit)
        if tail is None:
            return None
        events, state = tail
        newest = events[-1].seq
        if newest < 2 * limit or newest < checkpoint_seq or state.purpose:
            return None
        shown = newest_entries(events, state)
        if shown is not None:
            open_ends = repairs(events, project(events), store.load_partial(chat_id), str, 0.0, lambda message: 0)
            return None if open_ends else Newest(shown, state)
    return None


def pieces_above(pieces: Sequence[Restored], shown: Restored) -> list[Restored] | None:
    """Return the blocks of the whole log above those already shown, or None if those were not its end."""
    if not pieces or pieces[0].entries != shown.entries:
        return None
    return list(pieces[1:]) or [Restored(chat=shown.chat, entries=(), last=True)]
