"""Appends, reads and indexes the events of the log in SQL (R-003).

Events are appended inside a transaction of `writer_thread.Writer`, which keeps three things in step: the events
themselves (the truth), one row of totals per chat (`totals.py`), and the full-text index of all messages. Nothing here
ever changes an event; `deletion` deletes whole chats.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping

import msgspec

from codecompanion.model.history import (
    EventPayload,
    LogEvent,
    MessageAdded,
    payload_type,
)
from codecompanion.model.messages import STARTING_TAGS, Message, ToolCall
from codecompanion.store.log import scratch
from codecompanion.store.log.checksum import event_sum, is_event_sound
from codecompanion.store.log.encoding import from_bytes, storable, to_bytes
from codecompanion.store.log.previews import note_blobs
from codecompanion.store.log.tail_state import TailState, forget_state, keep_state, read_state
from codecompanion.store.log.totals import Totals, damaged_rows, read_totals, save_totals
from codecompanion.store.log.words_inside_words import inner_words
from codecompanion.store.sqlite_connection import is_damage

_INSERT = "INSERT INTO events(chat_id, seq, turn, ts, type, payload, sum) VALUES (?, ?, ?, ?, ?, ?, ?)"
NEWEST = 2**63 - 1
"""Greater than any sequence number: SQLite's largest integer."""
_SELECT_SINCE = "SELECT seq, ts, payload, sum FROM events WHERE chat_id = ? AND seq > ? AND seq <= ? ORDER BY seq"
_SELECT_SEQS = "SELECT seq FROM events WHERE chat_id = ? AND seq > ? AND seq <= ? ORDER BY seq"
_SELECT_ONE = "SELECT seq, ts, payload, sum FROM events WHERE chat_id = ? AND seq = ?"
_SELECT_BEFORE = (
    "SELECT payload FROM events WHERE chat_id = ? AND seq < ? AND type = 'message_added' ORDER BY seq DESC LIMIT ?"
)
_SELECT_NEWEST = "SELECT seq, ts, payload, sum FROM events WHERE chat_id = ? ORDER BY seq DESC LIMIT ?"
_CALL_WITHIN = 32
"""Maximum number of messages between a call and its result: the results of other calls in the same reply."""


def turn_of(payload: EventPayload) -> str:
    """Return the turn an event belongs to, or ""."""
    turn: str = getattr(payload, "turn_id", "")
    return payload.message.turn_id if isinstance(payload, MessageAdded) else turn


def is_findable(message: Message) -> bool:
    """Return whether a search may find the message; the system prompt, rules and memory of every chat are excluded."""
    return message.role != "system" and message.tag not in STARTING_TAGS


def is_searchable(message: Message) -> bool:
    """Return whether the text of the message is in the index."""
    return is_findable(message) and bool(message.text)


def append_events(
    connection: sqlite3.Connection,
    chat_id: str,
    payloads: Iterable[EventPayload],
    ts: float,
    *,
    after_seq: int = 0,
    spent: Totals | None = None,
) -> list[LogEvent]:
    """Append events to the chat's log inside the running transaction; the first event creates the chat.

    `after_seq`: continue numbering after this number, even if the log ends earlier. `spent`: totals with the chat's
    earlier cost.

    A reply clears the chat's partial reply, and a user message clears its draft, in the same transaction, so that no
    text appears twice after a crash.
    """
    totals = read_totals(connection, chat_id) or Totals(created=ts)
    before_seq = totals.last_seq
    totals.last_seq = max(totals.last_seq, after_seq)
    if spent is not None:
        totals.created, totals.cost_usd, totals.unpriced = spent.created, spent.cost_usd, spent.unpriced
    events = []
    for payload in payloads:
        totals.count(payload, ts)
        event = LogEvent(totals.last_seq, ts, payload)
        insert_event(connection, chat_id, event)
        if isinstance(payload, MessageAdded):
            scratch.clear_superseded(connection, chat_id, payload.message, ts)
        events.append(event)
    save_totals(connection, chat_id, totals)
    keep_state(connection, chat_id, before_seq, events)
    return events


def insert_event(connection: sqlite3.Connection, chat_id: str, event: LogEvent) -> None:
    """Insert one event and index its text."""
    payload, stored = event.payload, to_bytes(event.payload)
    turn = storable(turn_of(payload))
    row = (chat_id, event.seq, turn, event.ts, payload_type(payload), stored)
    cursor = connection.execute(_INSERT, (*row, event_sum(event.seq, event.ts, stored)))
    note_blobs(connection, chat_id, stored)
    index_text(connection, cursor.lastrowid, chat_id, event.seq, payload)


def index_text(
    connection: sqlite3.Connection, row_id: int | None, chat_id: str, seq: int, payload: EventPayload
) -> None:
    """Add a message's row to the search index."""
    if isinstance(payload, MessageAdded) and is_searchable(payload.message):
        text = storable(payload.message.text)
        connection.execute("INSERT INTO message_text(rowid, text) VALUES (?, ?)", (row_id, text))
    index_inner(connection, row_id, chat_id, seq, payload)


def index_inner(
    connection: sqlite3.Connection, row_id: int | None, chat_id: str, seq: int, payload: EventPayload
) -> None:
    """Add a message's inner words to the search index, replacing an existing row."""
    if isinstance(payload, MessageAdded) and is_findable(payload.message):
        call = _answered_call(connection, chat_id, seq, payload.message)
        words = storable(inner_words(payload.message, call))
        if words:
            connection.execute("INSERT OR REPLACE INTO message_inner(rowid, words) VALUES (?, ?)", (row_id, words))


def _answered_call(connection: sqlite3.Connection, chat_id: str, seq: int, message: Message) -> ToolCall | None:
    """Return the call that a result answers, if it is recent enough; ids may repeat, so the nearest call is used."""
    if message.tool_call_id is None:
        return None
    for (stored,) in connection.execute(_SELECT_BEFORE, (chat_id, seq, _CALL_WITHIN)):
        if b'"tool_calls"' in stored:
            with contextlib.suppress(msgspec.MsgspecError):
                payload = from_bytes(stored)
                calls = payload.message.tool_calls if isinstance(payload, MessageAdded) else ()
                call = next((call for call in calls if call.id == message.tool_call_id), None)
                if call is not None:
                    return call
    return None


def read_tail(connection: sqlite3.Connection, chat_id: str, limit: int) -> tuple[list[LogEvent], TailState] | None:
    """Return up to `limit` of the newest events and the state of the whole log, or None if the state is unknown.

    Also return None if one of these events is damaged or missing; then the whole log must be read.
    """
    stored = read_state(connection, chat_id)
    if stored is None:
        return None
    try:
        rows = connection.execute(_SELECT_NEWEST, (chat_id, limit)).fetchall()[::-1]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return None
    found, damaged = decode_rows(rows)
    is_whole = bool(found) and not damaged and found[-1].seq - found[0].seq == len(found) - 1
    if not is_whole or not found[0].seq - 1 <= stored.covers_seq <= found[-1].seq:
        return None
    return found, stored.after(found)


def restore_events(connection: sqlite3.Connection, events: Iterable[tuple[str, LogEvent]]) -> dict[str, int]:
    """Write salvaged events (chat id, event), keeping their sequence numbers (including gaps) and times.

    Returns the number of events written per chat; duplicates are written only once.
    """
    written: dict[str, int] = {}
    for chat_id, event in events:
        try:
            insert_event(connection, chat_id, event)
        except sqlite3.IntegrityError:
            continue
        written[chat_id] = written.get(chat_id, 0) + 1
    for chat_id in written:
        count_again(connection, chat_id)
    return written


def count_again(connection: sqlite3.Connection, chat_id: str) -> None:
    """Rebuild the chat's row of totals from its log; delete it if no event is readable."""
    forget_state(connection, chat_id)
    rows, unreadable = read_rows(connection, chat_id)
    found, damaged = decode_rows(rows)
    if not found:
        return
    chat = Totals()
    for event in found:
        chat.count(event.payload, event.ts)
    chat.created, chat.last_seq = found[0].ts, max((found[-1].seq, *unreadable, *damaged))
    save_totals(connection, chat_id, chat)


def restore_messages(connection: sqlite3.Connection, chat_id: str, restored: Mapping[int, Message], now: float) -> int:
    """Replace damaged or missing rows by these messages, by sequence number; return the number of rows written."""
    for seq, message in restored.items():
        connection.execute("DELETE FROM events WHERE chat_id = ? AND seq = ?", (chat_id, seq))
        insert_event(connection, chat_id, LogEvent(seq, message.ts or now, MessageAdded(message=message)))
    count_again(connection, chat_id)
    return len(restored)


_ORPHANS = """
    WITH RECURSIVE named(chat_id) AS (
        SELECT min(chat_id) FROM events
        UNION ALL
        SELECT (SELECT min(chat_id) FROM events WHERE chat_id > named.chat_id) FROM named WHERE chat_id IS NOT NULL
    )
    SELECT chat_id FROM named WHERE chat_id IS NOT NULL AND chat_id NOT IN (SELECT chat_id FROM chats)
"""


def restore_totals(connection: sqlite3.Connection) -> list[str]:
    """Rebuild damaged or missing rows of totals and return the ids of their chats.

    A row without events is dropped, because its id was damaged.
    """
    found = [*damaged_rows(connection), *(chat_id for (chat_id,) in connection.execute(_ORPHANS))]
    for chat_id in found:
        connection.execute("DELETE FROM chats WHERE chat_id = ?", (chat_id,))
        count_again(connection, chat_id)
    return found


Row = tuple[int, float, bytes, int | None]
"""An event row: seq, ts, payload, checksum."""


def read_rows(
    connection: sqlite3.Connection, chat_id: str, since: int = 0, until: int = NEWEST
) -> tuple[list[Row], list[int]]:
    """Return the rows with `since < seq <= until`, and the seqs of rows on damaged pages.

    Raises:
        sqlite3.DatabaseError: the index is damaged, so the seqs are unknown as well.
    """
    try:
        return connection.execute(_SELECT_SINCE, (chat_id, since, until)).fetchall(), []
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    rows: list[Row] = []
    unreadable: list[int] = []
    for (seq,) in connection.execute(_SELECT_SEQS, (chat_id, since, until)).fetchall():  # from the index only
        try:
            rows += connection.execute(_SELECT_ONE, (chat_id, seq)).fetchall()
        except sqlite3.DatabaseError:
            unreadable.append(seq)
    return rows, unreadable


def decode_rows(rows: Iterable[Row]) -> tuple[list[LogEvent], list[int]]:
    """Return the events, and the seqs of rows whose content is damaged."""
    events: list[LogEvent] = []
    damaged: list[int] = []
    is_sound, decode, add = is_event_sound, from_bytes, events.append
    for seq, ts, stored, stored_sum in rows:
        if not is_sound(seq, ts, stored, stored_sum):
            damaged.append(seq)
            continue
        try:
            add(LogEvent(seq, ts, decode(stored)))
        except msgspec.MsgspecError:
            damaged.append(seq)
    return events, damaged
