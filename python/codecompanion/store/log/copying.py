"""Copies the beginning of a chat's log into a new chat, in one transaction (`session.actions.forking`).

Rows are copied unchanged, with their times, and share the full-text entries of the originals; only the rows needed for
the totals are loaded.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Sequence

import msgspec

from codecompanion.errors import StoreUnavailable
from codecompanion.model.history import EventPayload
from codecompanion.store.log import event_rows
from codecompanion.store.log.encoding import from_bytes
from codecompanion.store.log.totals import Totals, read_totals, save_totals

_TAKEN = "chat_id = ?2 AND seq <= ?3 AND type <> 'chat_forked' AND seq NOT IN (SELECT value FROM json_each(?4))"


def _xor(one: str, other: str) -> str:
    """Return the SQL for `one ^ other`, an operator that SQLite lacks."""
    return f"(({one} | {other}) - ({one} & {other}))"


# The checksum still covers the original bytes, so a copy of a damaged row is detected as damaged.
_COPY = f"""
    INSERT INTO events(chat_id, seq, turn, ts, type, payload, sum)
    SELECT ?1, place, turn, ts, type, payload, {_xor("sum", _xor("seq", "place"))} FROM (
        SELECT seq, turn, ts, type, payload, sum, ROW_NUMBER() OVER (ORDER BY seq) AS place FROM events WHERE {_TAKEN}
    ) ORDER BY seq
"""  # noqa: S608 - a constant
# Indexing the text again would take longer than all other steps together.
_SHARE_TEXT = f"""
    INSERT INTO shared_text(event_id, text_id)
    SELECT copy.id, COALESCE(shared_text.text_id, taken.id)
    FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY seq) AS place FROM events WHERE {_TAKEN}) AS taken
        JOIN events AS copy ON copy.chat_id = ?1 AND copy.seq = taken.place
        LEFT JOIN shared_text ON shared_text.event_id = taken.id
    WHERE copy.type = 'message_added'
"""  # noqa: S608 - a constant
_READ = """
    SELECT ts, payload FROM events
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
    """Create a chat from another chat's events up to `last_seq`, except `left_out`, and append the payloads.

    Raises:
        StoreUnavailable: the chat already exists.
    """
    if connection.execute("SELECT 1 FROM chats WHERE chat_id = ?", (chat_id,)).fetchone():
        raise StoreUnavailable(f"chat {chat_id!r} already exists; nothing was copied")
    numbers = msgspec.json.encode(sorted(left_out)).decode("ascii")
    taken = (chat_id, from_chat, last_seq, numbers)
    count = connection.execute(_COPY, taken).rowcount
    connection.execute(_SHARE_TEXT, taken)
    connection.execute(_COPY_BLOB_USES, (chat_id, from_chat))
    totals = _totals(connection, from_chat, chat_id, last_seq, left_out, ts)
    totals.last_seq = count
    save_totals(connection, chat_id, totals)
    event_rows.append_events(connection, chat_id, payloads, ts)


def _totals(
    connection: sqlite3.Connection, from_chat: str, chat_id: str, last_seq: int, left_out: Collection[int], ts: float
) -> Totals:
    """Return the totals of the copy: those of the other chat if all was copied, else the sums of its messages."""
    totals = read_totals(connection, from_chat)
    if totals is not None and totals.last_seq == last_seq and not left_out:
        totals.created = ts
        return totals
    totals = Totals(created=ts)
    for event_ts, stored in connection.execute(_READ, (chat_id,)):
        with contextlib.suppress(msgspec.MsgspecError):  # a damaged row stays damaged
            totals.count(from_bytes(stored), event_ts)
    return totals
