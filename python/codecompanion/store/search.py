"""Full-text search over everything ever said, also what was cleared or compacted away.

The index stores no text; the few hits are read from the log and their snippets made by a throw-away index in memory.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3

import msgspec

from codecompanion.history import MessageAdded
from codecompanion.messages import Message
from codecompanion.store.migrations import TOKENIZER
from codecompanion.store.sessions import from_bytes, storable

_WORD = re.compile(r"[^\W_]+")
_SNIPPET_TOKENS = 16


class SearchHit(msgspec.Struct, frozen=True):
    """A message that was found. `snippet` marks the words found with « »; `ts` is seconds since the epoch."""

    chat_id: str
    title: str
    seq: int
    ts: float
    message_id: str
    role: str
    snippet: str


def match_expression(query: str) -> str:
    """Return what the user typed as an FTS5 query: all words, the last one as a beginning; "" without any word."""
    words = [f'"{word}"' for word in _WORD.findall(storable(query))]
    return " ".join(words) + "*" if words else ""


def search_messages(connection: sqlite3.Connection, query: str, chat_id: str | None, limit: int) -> list[SearchHit]:
    """Return the best hits, best first; all words must occur. Damaged rows are left out."""
    expression = match_expression(query)
    if not expression:
        return []
    rows = connection.execute(
        # Sorted first, read afterwards: otherwise the text of every match goes through the sorter.
        """WITH best AS (
            SELECT events.id, bm25(message_text) AS score, events.ts
            FROM message_text JOIN events ON events.id = message_text.rowid
            WHERE message_text MATCH ?1 AND (?2 IS NULL OR events.chat_id = ?2)
            UNION ALL
            SELECT events.id, bm25(message_text) AS score, events.ts
            FROM message_text JOIN shared_text ON shared_text.text_id = message_text.rowid
                JOIN events ON events.id = shared_text.event_id
            WHERE message_text MATCH ?1 AND (?2 IS NULL OR events.chat_id = ?2)
            ORDER BY score, ts DESC LIMIT ?3
        )
        SELECT events.chat_id, chats.title, events.seq, events.ts, events.payload
        FROM best JOIN events ON events.id = best.id JOIN chats ON chats.chat_id = events.chat_id
        ORDER BY best.score, best.ts DESC""",
        (expression, chat_id, limit),
    ).fetchall()
    found: list[tuple[tuple[str, str, int, float], Message]] = []
    for *place, stored in rows:
        with contextlib.suppress(msgspec.MsgspecError):
            payload = from_bytes(stored)
            if isinstance(payload, MessageAdded):
                found.append(((place[0], place[1], place[2], place[3]), payload.message))
    snippets = _make_snippets([message.text for _, message in found], expression)
    return [
        SearchHit(*place, message.id, message.role, snippet)
        for (place, message), snippet in zip(found, snippets, strict=True)
    ]


def _make_snippets(texts: list[str], expression: str) -> list[str]:
    """Return the piece of each text around the words found."""
    with contextlib.closing(sqlite3.connect(":memory:")) as scrap:
        scrap.execute(f"CREATE VIRTUAL TABLE hits USING fts5(text, tokenize='{TOKENIZER}')")
        scrap.executemany("INSERT INTO hits(rowid, text) VALUES (?, ?)", enumerate(map(storable, texts)))
        marked = dict(
            scrap.execute(
                "SELECT rowid, snippet(hits, 0, '«', '»', '…', ?) FROM hits WHERE hits MATCH ?",
                (_SNIPPET_TOKENS, expression),
            )
        )
    return [marked.get(number, "") for number in range(len(texts))]
