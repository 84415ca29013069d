"""Deleting a chat: its events with their search index, its totals, drafts and lease, and contents only it used.

Everything in the database goes in one transaction. Files go afterwards: a kill in between leaves contents that no chat
uses, and the next deletion removes them too. A content younger than `YOUNG_S` is left for later, because another
Neovim may have stored it for an event that is not logged yet.
"""

from __future__ import annotations

import contextlib
import sqlite3

import msgspec

from codecompanion.history import MessageAdded
from codecompanion.store.blobs import Blobs
from codecompanion.store.sessions import from_bytes, is_searchable, storable

YOUNG_S = 600.0
_UNINDEX = "INSERT INTO message_text(message_text, rowid, text) VALUES ('delete', ?, ?)"

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
    rows = connection.execute("SELECT id, payload FROM events WHERE chat_id = ? AND type = 'message_added'", (chat_id,))
    for row_id, stored in rows:
        with contextlib.suppress(msgspec.MsgspecError):  # a damaged row cannot be found either
            payload = from_bytes(stored)
            if isinstance(payload, MessageAdded) and is_searchable(payload.message):
                connection.execute(_UNINDEX, (row_id, storable(payload.message.text)))
    connection.execute(_KEEP_SPENDING, (chat_id,))
    deleted = connection.execute("DELETE FROM events WHERE chat_id = ?", (chat_id,)).rowcount
    for statement in _DELETIONS:
        connection.execute(statement, (chat_id,))
    return deleted


def delete_unused_blobs(connection: sqlite3.Connection, blobs: Blobs, now: float) -> int:
    """Delete the stored contents that no chat uses; return how many."""
    deleted = 0
    for name, stored_at in blobs.stored():
        used = connection.execute("SELECT 1 FROM blob_uses WHERE sha256 = ? LIMIT 1", (name,)).fetchone()
        if used is None and now - stored_at > YOUNG_S:
            blobs.delete(name)
            deleted += 1
    return deleted
