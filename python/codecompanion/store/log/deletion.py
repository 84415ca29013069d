"""Deleting a chat: its events with their search index, its totals, drafts and lease, and contents only it used.

Everything in the database goes in one transaction. Files go afterwards: a kill in between leaves contents that no chat
uses, and the next deletion removes them too. A content younger than `YOUNG_S` is left for later, because another
Neovim may have stored it for an event that is not logged yet.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable

import msgspec

from codecompanion.model.history import MessageAdded
from codecompanion.store.files.blobs import Blobs
from codecompanion.store.log.sessions import from_bytes, is_searchable, storable

YOUNG_S = 600.0
SLICE = 200
"""So many contents are looked at in a row; measured 24 µs each, and whoever wants to write waits for it."""
_UNINDEX = "INSERT INTO message_text(message_text, rowid, text) VALUES ('delete', ?, ?)"

# Texts that no other chat has; a copy always has a larger id than its text, so no new event gets the id of one in use.
_OWN_TEXTS = """
    SELECT COALESCE(text_id, events.id) AS text, payload
    FROM events LEFT JOIN shared_text ON shared_text.event_id = events.id
    WHERE chat_id = ?1 AND type = 'message_added'
        AND NOT EXISTS (SELECT 1 FROM events AS source WHERE source.id = shared_text.text_id AND source.chat_id <> ?1)
        AND NOT EXISTS (
            SELECT 1 FROM shared_text AS other JOIN events AS copy ON copy.id = other.event_id
            WHERE other.text_id = COALESCE(shared_text.text_id, events.id) AND copy.chat_id <> ?1
        )
"""

_FORGET_SHARED = "DELETE FROM shared_text WHERE event_id IN (SELECT id FROM events WHERE chat_id = ?)"

_KEEP_SPENDING = (
    "INSERT INTO deleted_spending(usd, unpriced) SELECT cost_usd, unpriced FROM chats "
    "WHERE chat_id = ? AND (cost_usd > 0 OR unpriced > 0)"
)
_DELETIONS = (
    "DELETE FROM chats WHERE chat_id = ?",
    "DELETE FROM scratch WHERE chat_id = ?",
    "DELETE FROM leases WHERE chat_id = ?",
    "DELETE FROM blob_uses WHERE chat_id = ?",
)


def delete_chat(connection: sqlite3.Connection, chat_id: str) -> int:
    """Delete what the database knows of the chat, inside the running transaction; return how many events that were."""
    # Freed pages are overwritten: what was deleted cannot be read from the file, nor come back by a salvage.
    connection.execute("PRAGMA secure_delete = ON")
    for text_id, stored in connection.execute(_OWN_TEXTS, (chat_id,)):
        connection.execute("DELETE FROM message_inner WHERE rowid = ?", (text_id,))
        with contextlib.suppress(msgspec.MsgspecError):  # a damaged row cannot be found either
            payload = from_bytes(stored)
            if isinstance(payload, MessageAdded) and is_searchable(payload.message):
                connection.execute(_UNINDEX, (text_id, storable(payload.message.text)))
    connection.execute(_KEEP_SPENDING, (chat_id,))
    connection.execute(_FORGET_SHARED, (chat_id,))
    deleted = connection.execute("DELETE FROM events WHERE chat_id = ?", (chat_id,)).rowcount
    for statement in _DELETIONS:
        connection.execute(statement, (chat_id,))
    return deleted


def delete_unused_blobs(connection: sqlite3.Connection, blobs: Blobs, names: Iterable[str], now: float) -> int:
    """Delete those of the stored contents that no chat uses; return how many."""
    deleted = 0
    for name in names:
        used = connection.execute("SELECT 1 FROM blob_uses WHERE sha256 = ? LIMIT 1", (name,)).fetchone()
        if used is None and now - blobs.stored_at(name) > YOUNG_S:
            blobs.delete(name)
            deleted += 1
    return deleted
