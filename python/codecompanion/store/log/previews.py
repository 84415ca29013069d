"""Keeps data derived from a chat's log, which saves reading it: previews of its questions, and blob uses.

Both can be rebuilt from the log. The `fill_…` functions do so for databases of older versions (`migrations`). They do
not use the current types, because they read the JSON as it was stored then. The search for the newest question starts
at the end, so a long log costs as little as a short one.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator

from codecompanion.formats.cutting import cut_line, without_code
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex

PREVIEW_CHARS = 160
_BLOB_NAME = regex(rb'"([0-9a-f]{64})"')
_READ_AT_ONCE = 500
_FROM_START = "SELECT payload FROM events WHERE chat_id = ? AND type = 'message_added' ORDER BY seq"
_FROM_END = f"{_FROM_START} DESC"


def preview_of(text: str) -> str:
    """Return the beginning of a message on one line, without code blocks, storable in SQLite."""
    return cut_line(without_code(text)[: 4 * PREVIEW_CHARS], PREVIEW_CHARS).encode("utf-8", "replace").decode("utf-8")


def blobs_in(stored: bytes) -> set[str]:
    """Return the names of the blobs that a stored payload uses: every JSON string that is a sha256."""
    return {name.decode("ascii") for name in _BLOB_NAME.findall(stored)}


def note_blobs(connection: sqlite3.Connection, chat_id: str, stored: bytes) -> None:
    """Record which blobs a payload of the chat uses."""
    for name in blobs_in(stored):
        connection.execute("INSERT OR IGNORE INTO blob_uses(sha256, chat_id) VALUES (?, ?)", (name, chat_id))


def fill_previews(connection: sqlite3.Connection) -> None:
    """Fill the columns `first_question` and `last_question` of every chat from its log."""
    for (chat_id,) in connection.execute("SELECT chat_id FROM chats").fetchall():
        first = next(_questions(connection, chat_id, _FROM_START), "")
        last = next(_questions(connection, chat_id, _FROM_END), "") if first else ""
        connection.execute(
            "UPDATE chats SET first_question = ?, last_question = ? WHERE chat_id = ?",
            (preview_of(first), preview_of(last), chat_id),
        )


def fill_blob_uses(connection: sqlite3.Connection) -> None:
    """Fill the table of blob uses from all logs."""
    last = 0
    while rows := connection.execute(
        "SELECT id, chat_id, payload FROM events WHERE id > ? ORDER BY id LIMIT ?", (last, _READ_AT_ONCE)
    ).fetchall():
        last = rows[-1][0]
        for _, chat_id, stored in rows:
            note_blobs(connection, chat_id, bytes(stored))


def _questions(connection: sqlite3.Connection, chat_id: str, query: str) -> Iterator[str]:
    """Yield the messages typed by the user, in the order of `query`."""
    for (stored,) in connection.execute(query, (chat_id,)):
        with contextlib.suppress(*NOT_READABLE, AttributeError, TypeError):
            message = json.loads(stored).get("message")
            content = message.get("content")
            if message.get("role") == "user" and not message.get("tag") and isinstance(content, str):
                yield content
