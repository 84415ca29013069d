"""The event log in SQL: append, read, list, search (R-003).

Appending happens inside a transaction of `writer.Writer` and keeps three things in step: the events themselves (the
truth), one row of totals per chat for the picker, and the full-text index over what was said. Nothing here ever
changes an event; `deletion` deletes whole chats.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.history import (
    ChatCreated,
    ChatForked,
    EventPayload,
    LogEvent,
    MessageAdded,
    ModelSet,
    TitleSet,
    UsageReported,
    decode_payload,
    encode_payload,
    payload_type,
)
from codecompanion.model.messages import RULES_TAG, Message, ToolCall, is_typed_by_user
from codecompanion.store.database.connection import is_damage
from codecompanion.store.log import scratch
from codecompanion.store.log.inner_words import inner_words
from codecompanion.store.log.previews import note_blobs, preview_of

_INSERT = "INSERT INTO events(chat_id, seq, turn, ts, type, payload) VALUES (?, ?, ?, ?, ?, ?)"
_TOTALS = (
    "title, cwd, adapter, model, created, updated, messages, last_seq, cost_usd, unpriced, "
    "first_question, last_question, forked_from, family"
)
_SELECT_TOTALS = f"SELECT {_TOTALS} FROM chats WHERE chat_id = ?"  # noqa: S608 - a constant
_MARKS = ", ".join("?" * len(_TOTALS.split(",")))
_SAVE_TOTALS = f"INSERT OR REPLACE INTO chats(chat_id, {_TOTALS}) VALUES (?, {_MARKS})"  # noqa: S608 - likewise
NEWEST = 2**63 - 1
"""No entry has a higher number: so many SQLite can count."""
_SELECT_SINCE = "SELECT seq, ts, payload FROM events WHERE chat_id = ? AND seq > ? AND seq <= ? ORDER BY seq"
_SELECT_SEQS = "SELECT seq FROM events WHERE chat_id = ? AND seq > ? AND seq <= ? ORDER BY seq"
_SELECT_ONE = "SELECT seq, ts, payload FROM events WHERE chat_id = ? AND seq = ?"
_SELECT_BEFORE = (
    "SELECT payload FROM events WHERE chat_id = ? AND seq < ? AND type = 'message_added' ORDER BY seq DESC LIMIT ?"
)
_CALL_WITHIN = 32
"""Messages between a call and its result: the results of its other calls."""


class SessionInfo(msgspec.Struct, frozen=True):
    """A stored chat in the picker. `updated` is seconds since the epoch, `messages` counts what user and model said.

    `owned`: another living Neovim has it open, so it can only be read here. `first_question` and `last_question` are
    the beginnings of what the user typed first and last. `forked_from` is the chat this one is a branch of, `family`
    the first chat of that tree ("" for a chat that was never forked from another).
    """

    id: str
    title: str
    updated: float
    messages: int
    cwd: str
    adapter: str
    model: str
    owned: bool = False
    created: float = 0.0
    first_question: str = ""
    last_question: str = ""
    forked_from: str = ""
    family: str = ""


class Spent(msgspec.Struct, frozen=True):
    """What provider calls have cost in US dollars, and how many had no known price and are not in that sum."""

    usd: float = 0.0
    unpriced: int = 0


class Totals(msgspec.Struct):
    """The row of totals of one chat, kept up to date event by event."""

    title: str = ""
    cwd: str = ""
    adapter: str = ""
    model: str = ""
    created: float = 0.0
    updated: float = 0.0
    messages: int = 0
    last_seq: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    first_question: str = ""
    last_question: str = ""
    forked_from: str = ""
    family: str = ""

    def count(self, payload: EventPayload, ts: float) -> None:
        """Take one more event into account. A new name makes a chat no newer."""
        self.last_seq += 1
        if not (isinstance(payload, TitleSet) and payload.by_user):
            self.updated = ts
        match payload:
            case ChatCreated():
                self.adapter, self.model, self.cwd = map(storable, (payload.adapter, payload.model, payload.cwd))
            case ModelSet():
                self.adapter, self.model = storable(payload.adapter), storable(payload.model)
            case TitleSet():
                self.title = storable(payload.title)
            case ChatForked():
                self.forked_from, self.family = payload.from_chat, payload.family
                self.cost_usd, self.unpriced = 0.0, 0  # what was copied was paid for in the other chat
            case MessageAdded(message=message) if is_typed_by_user(message):
                self.messages += 1
                self.last_question = preview_of(message.text)
                self.first_question = self.first_question or self.last_question
            case MessageAdded(message=message) if message.role == "assistant":
                self.messages += 1
            case UsageReported(cost_usd=None):
                self.unpriced += 1
            case UsageReported(cost_usd=float() as cost):
                self.cost_usd += cost
            case _:
                pass


def read_spent(connection: sqlite3.Connection, chat_id: str | None = None) -> Spent:
    """Return what one chat has cost, or all of them together, deleted ones too; from totals, whatever their length."""
    row = connection.execute(
        """SELECT TOTAL(usd), COALESCE(SUM(unpriced), 0) FROM (
            SELECT cost_usd AS usd, unpriced FROM chats WHERE ?1 IS NULL OR chat_id = ?1
            UNION ALL SELECT usd, unpriced FROM deleted_spending WHERE ?1 IS NULL
        )""",
        (chat_id,),
    ).fetchone()
    return Spent(*row)


def storable(text: str) -> str:
    """Return the text with lone surrogates (bytes that were no UTF-8) replaced: SQLite columns hold UTF-8 only."""
    return text.encode("utf-8", "replace").decode("utf-8")


def to_bytes(payload: EventPayload) -> bytes:
    """Return the payload as JSON; lone surrogates, which msgspec refuses, go as JSON escapes: nothing is lost."""
    try:
        return encode_payload(payload)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(payload), separators=(",", ":")).encode("ascii")


def from_bytes(stored: bytes) -> EventPayload:
    """Return the payload from what `to_bytes` wrote; raises `msgspec.MsgspecError` when it is damaged."""
    try:
        return decode_payload(stored)
    except (*NOT_READABLE, TypeError) as error:
        try:
            if b"\\ud" not in stored:
                raise error
            payload: EventPayload = msgspec.convert(json.loads(stored), EventPayload)
            return payload
        except (*NOT_READABLE, TypeError) as problem:
            raise msgspec.DecodeError(str(problem)) from problem


def turn_of(payload: EventPayload) -> str:
    """Return the turn an event belongs to, "" when it has none."""
    turn: str = getattr(payload, "turn_id", "")
    return payload.message.turn_id if isinstance(payload, MessageAdded) else turn


def is_findable(message: Message) -> bool:
    """Return whether a search should find the message: system prompt and rules are in every chat, so they are not."""
    return message.role != "system" and message.tag != RULES_TAG


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
    """Append to the log of the chat inside the running transaction; the first event makes the chat.

    `after_seq`: the numbers begin after it, although the chat does not reach so far. `spent`: what it had cost before.

    A reply clears the chat's partial reply and a user message the draft it was typed as, in the same transaction, so
    that no crash can show a text twice.
    """
    totals = read_totals(connection, chat_id) or Totals(created=ts)
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
    return events


def insert_event(connection: sqlite3.Connection, chat_id: str, event: LogEvent) -> None:
    """Insert one event and index its text."""
    payload, stored = event.payload, to_bytes(event.payload)
    turn = storable(turn_of(payload))
    cursor = connection.execute(_INSERT, (chat_id, event.seq, turn, event.ts, payload_type(payload), stored))
    note_blobs(connection, chat_id, stored)
    index_text(connection, cursor.lastrowid, chat_id, event.seq, payload)


def index_text(
    connection: sqlite3.Connection, row_id: int | None, chat_id: str, seq: int, payload: EventPayload
) -> None:
    """Let a message be found by its row."""
    if isinstance(payload, MessageAdded) and is_searchable(payload.message):
        text = storable(payload.message.text)
        connection.execute("INSERT INTO message_text(rowid, text) VALUES (?, ?)", (row_id, text))
    index_inner(connection, row_id, chat_id, seq, payload)


def index_inner(
    connection: sqlite3.Connection, row_id: int | None, chat_id: str, seq: int, payload: EventPayload
) -> None:
    """Let a message be found by what does not stand in its text as a word; a row that is there already is replaced."""
    if isinstance(payload, MessageAdded) and is_findable(payload.message):
        call = _answered_call(connection, chat_id, seq, payload.message)
        words = storable(inner_words(payload.message, call))
        if words:
            connection.execute("INSERT OR REPLACE INTO message_inner(rowid, words) VALUES (?, ?)", (row_id, words))


def _answered_call(connection: sqlite3.Connection, chat_id: str, seq: int, message: Message) -> ToolCall | None:
    """Return the call a result answers, when it stands shortly before; ids may repeat, so the nearest one counts."""
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


def read_totals(connection: sqlite3.Connection, chat_id: str) -> Totals | None:
    """Return the chat's row of totals, None when there is no such chat."""
    row = connection.execute(_SELECT_TOTALS, (chat_id,)).fetchone()
    return Totals(*row) if row else None


def read_all_totals(connection: sqlite3.Connection) -> dict[str, Totals]:
    """Return the rows of totals by chat."""
    rows = connection.execute(f"SELECT chat_id, {_TOTALS} FROM chats").fetchall()  # noqa: S608 - a constant
    return {row[0]: Totals(*row[1:]) for row in rows}


def save_totals(connection: sqlite3.Connection, chat_id: str, totals: Totals) -> None:
    """Write the chat's row of totals."""
    connection.execute(_SAVE_TOTALS, (chat_id, *msgspec.structs.astuple(totals)))


def restore_events(connection: sqlite3.Connection, events: Iterable[tuple[str, LogEvent]]) -> dict[str, int]:
    """Write salvaged events (chat id, event) as they were: seqs and times are kept, gaps stay gaps.

    Returns how many events of each chat were written; one that is there twice is written once.
    """
    written: dict[str, int] = {}
    for chat_id, event in events:
        try:
            insert_event(connection, chat_id, event)
        except sqlite3.IntegrityError:
            continue
        written[chat_id] = written.get(chat_id, 0) + 1
    for chat_id in written:
        chat, created = Totals(), 0.0
        for seq, ts, stored in connection.execute(_SELECT_SINCE, (chat_id, 0, NEWEST)):
            created = created or ts
            chat.count(from_bytes(stored), ts)
            chat.last_seq = seq
        chat.created = created
        save_totals(connection, chat_id, chat)
    return written


Row = tuple[int, float, bytes]


def read_rows(
    connection: sqlite3.Connection, chat_id: str, since: int = 0, until: int = NEWEST
) -> tuple[list[Row], list[int]]:
    """Return the rows with `since < seq <= until`, and the seqs that could not be read because a page is damaged.

    Raises:
        sqlite3.DatabaseError: the index is damaged, so that not even the seqs are known.
    """
    try:
        return connection.execute(_SELECT_SINCE, (chat_id, since, until)).fetchall(), []
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    rows: list[Row] = []
    unreadable: list[int] = []
    for (seq,) in connection.execute(_SELECT_SEQS, (chat_id, since, until)).fetchall():  # from the index alone
        try:
            rows += connection.execute(_SELECT_ONE, (chat_id, seq)).fetchall()
        except sqlite3.DatabaseError:
            unreadable.append(seq)
    return rows, unreadable


def decode_rows(rows: Iterable[Row]) -> tuple[list[LogEvent], list[int]]:
    """Return the events, and the seqs of rows whose content is damaged."""
    events: list[LogEvent] = []
    damaged: list[int] = []
    for seq, ts, stored in rows:
        try:
            events.append(LogEvent(seq, ts, from_bytes(stored)))
        except msgspec.MsgspecError:
            damaged.append(seq)
    return events, damaged


def list_rows(
    connection: sqlite3.Connection,
    *,
    cwd: str | None = None,
    chat_id: str | None = None,
    family: str | None = None,
    limit: int = 1,
    empty: bool = False,
) -> list[tuple[SessionInfo, str | None]]:
    """Return the chats worth resuming (something was said, or a draft waits), newest first, each with its owner.

    `empty`: the others, too.
    """
    rows = connection.execute(
        """SELECT owner, chats.chat_id, title, updated, messages, cwd, adapter, model, 0, created, first_question,
            last_question, forked_from, family
        FROM chats LEFT JOIN leases ON leases.chat_id = chats.chat_id
        WHERE (?1 IS NULL OR cwd = ?1) AND (?2 IS NULL OR chats.chat_id = ?2)
          AND (?3 IS NULL OR family = ?3 OR chats.chat_id = ?3)
          AND (?5 OR messages > 0 OR EXISTS (SELECT 1 FROM scratch WHERE scratch.chat_id = chats.chat_id))
        ORDER BY updated DESC, chats.chat_id LIMIT ?4""",
        (cwd if cwd is None else storable(cwd), chat_id, family, limit, empty),
    ).fetchall()
    return [(SessionInfo(*info), owner) for owner, *info in rows]
