"""Copying the beginning of a chat's log into a new chat, inside one transaction (`session.forking`).

Rows are copied as they are, with their times; only what the totals and the search index need is read.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Sequence

import msgspec

from codecompanion.errors import StoreUnavailable
from codecompanion.history import EventPayload
from codecompanion.store import sessions

_COPY = """
    INSERT INTO events(chat_id, seq, turn, ts, type, payload)
    SELECT ?1, ROW_NUMBER() OVER (ORDER BY seq), turn, ts, type, payload FROM events
    WHERE chat_id = ?2 AND seq <= ?3 AND type <> 'chat_forked' AND seq NOT IN (SELECT value FROM json_each(?4))
    ORDER BY seq
"""
_READ = """
    SELECT id, seq, ts, payload FROM events
    WHERE chat_id = ? AND type IN ('chat_created', 'model_set', 'title_set', 'message_added') ORDER BY seq
"""
_COPY_BLOB_USES = "INSERT OR IGNORE INTO blob_uses(sha256, chat_id) SELECT sha256, ?1 FROM blob_uses WHERE chat_id = ?2"


def copy_chat(
    connection: sqlite3.Connection,
    from_chat: str,
    chat_id: str,
    last_seq: int,
    left_out: Collection[int],
    payloads: Sequence[EventPayload],
    ts: float,
) -> None:
    """Make the chat out of another one's events up to `last_seq`, without some, and append the payloads.

    Raises:
        StoreUnavailable: there is such a chat already.
    """
    if connection.execute("SELECT 1 FROM chats WHERE chat_id = ?", (chat_id,)).fetchone():
        raise StoreUnavailable(f"there is a chat {chat_id!r} already; nothing was copied")
    numbers = msgspec.json.encode(sorted(left_out)).decode("ascii")
    count = connection.execute(_COPY, (chat_id, from_chat, last_seq, numbers)).rowcount
    connection.execute(_COPY_BLOB_USES, (chat_id, from_chat))
    totals = sessions.Totals(created=ts)
    for row_id, _, event_ts, stored in connection.execute(_READ, (chat_id,)).fetchall():
        with contextlib.suppress(msgspec.MsgspecError):  # a damaged row stays one
            payload = sessions.from_bytes(stored)
            totals.count(payload, event_ts)
            sessions.index_text(connection, row_id, payload)
    totals.last_seq = count
    sessions.save_totals(connection, chat_id, totals)
    sessions.append_events(connection, chat_id, payloads, ts)
