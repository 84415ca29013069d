"""Applies the store's search to messages that are not in a store, using an in-memory index (R-516)."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from codecompanion.model.messages import Message, ToolCall
from codecompanion.store.log.encoding import storable
from codecompanion.store.log.event_rows import is_findable
from codecompanion.store.log.migrations import TOKENIZER
from codecompanion.store.log.words_inside_words import inner_words
from codecompanion.store.search.find import find_rows
from codecompanion.store.search.parsed_question import read_question
from codecompanion.store.search.periods import date_of
from codecompanion.store.search.ranking import Row
from codecompanion.store.search.snippets import make_snippets

_TABLES = (
    "CREATE TABLE events (id INTEGER PRIMARY KEY, chat_id TEXT, seq INTEGER, ts REAL, type TEXT)",
    "CREATE UNIQUE INDEX places ON events(chat_id, seq)",
    "CREATE TABLE shared_text (event_id INTEGER PRIMARY KEY, text_id INTEGER)",
    f"CREATE VIRTUAL TABLE message_text USING fts5(text, content='', tokenize='{TOKENIZER}')",
    f"CREATE VIRTUAL TABLE message_inner USING fts5(words, content='', tokenize='{TOKENIZER}')",
)
_DATE_CHARS = 80


class ChatIndex:
    """A search index of one chat; close it after use. Messages are identified by their positions in the chat."""

    def __init__(self, messages: Sequence[Message]) -> None:
        """Build the index; takes about a second for 20,000 messages."""
        self._messages = messages
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        for statement in _TABLES:
            self._connection.execute(statement)
        self._connection.execute("BEGIN")
        times = [message.ts or _time_in(message.text) for message in messages]
        self._connection.executemany(
            "INSERT INTO events VALUES (?, 'chat', ?, ?, 'message_added')",
            ((row, row, ts) for row, ts in enumerate(times)),
        )
        self._connection.executemany(
            "INSERT INTO message_text(rowid, text) VALUES (?, ?)",
            ((row, storable(one.text)) for row, one in enumerate(messages) if is_findable(one) and one.text),
        )
        self._connection.executemany("INSERT INTO message_inner(rowid, words) VALUES (?, ?)", _inner(messages))
        self._connection.execute("COMMIT")
        latest = max(times, default=0.0)
        self._today = datetime.date.today()
        with contextlib.suppress(ValueError, OverflowError, OSError):
            self._today = datetime.date.fromtimestamp(latest) if latest > 0 else self._today

    def find(self, query: str, limit: int) -> list[int]:
        """Return the positions of the messages that match the query, best first.

        "yesterday" is relative to the last message.
        """
        question = read_question(storable(query), self._today)
        return list(itertools.islice(find_rows(self._connection, question, None, self._read), limit))

    def snippets(self, query: str, places: Sequence[int]) -> list[str]:
        """Return a snippet around the matched words for each message."""
        return make_snippets([self._messages[place] for place in places], read_question(storable(query), self._today))

    def close(self) -> None:
        """Free the memory."""
        self._connection.close()

    def _read(self, rows: Iterable[Row]) -> Mapping[Row, Message]:
        return {row: self._messages[row] for row in rows if row >= 0}


def _inner(messages: Sequence[Message]) -> Iterable[tuple[int, str]]:
    calls: dict[str, ToolCall] = {}
    for row, message in enumerate(messages):
        calls.update((call.id, call) for call in message.tool_calls)
        call = calls.get(message.tool_call_id) if message.tool_call_id is not None else None
        if is_findable(message):
            words = storable(inner_words(message, call))
            if words:
                yield row, words


def _time_in(text: str) -> float:
    """Return the timestamp (noon) of a date at the start of the text, or 0.0 if there is none."""
    day = date_of(text[:_DATE_CHARS])
    if day is None:
        return 0.0
    return datetime.datetime(day.year, day.month, day.day, 12).astimezone().timestamp()
