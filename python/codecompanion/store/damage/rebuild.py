"""Writes the open chats, either their log or their view, into the file that replaced a lost one (`lost_file`).

A host remembers the view of its open chats. If the lost file is still readable, a chat's log is copied from it
unchanged, including undo; otherwise the view is written as a new log. A file with an older state of the chat (a backup)
gets the missing part. Other chats are restored from their checkpoints later, because they are not urgent.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from codecompanion.errors import LeaseHeld
from codecompanion.formats.plural import counted
from codecompanion.model.history import EventPayload, Insertion, LogEvent, MessageAdded, ViewChanged
from codecompanion.model.messages import Message
from codecompanion.model.view import View, apply, project
from codecompanion.store import lease
from codecompanion.store.damage.lost_file import Renewed
from codecompanion.store.lease import Owner
from codecompanion.store.log import scratch
from codecompanion.store.log.event_rows import append_events, decode_rows, read_rows, restore_events
from codecompanion.store.log.scratch import Calibration, ScratchRow
from codecompanion.store.log.totals import Totals, read_all_totals
from codecompanion.store.sqlite_connection import SEE_RESTORE

Extent = Literal["whole", "view", "there", "taken", "failed"]
"""How much of a chat was written to the new file: its whole log; its view; nothing, because it was already there;
nothing, because another Neovim has the chat; nothing, because the file could not be written."""


class LiveChat(msgspec.Struct, frozen=True):
    """An open chat as its host has it in memory: `opening`, the messages of the view and `closing` form a new log.

    `rewritten` adapts a message to the new log, in which references to the lost log are not valid.
    """

    chat_id: str
    view: View
    opening: tuple[EventPayload, ...] = ()
    closing: tuple[EventPayload, ...] = ()
    rewritten: Callable[[Message], Message] = lambda message: message


class Rebuilt(msgspec.Struct, frozen=True):
    """The result of rebuilding one open chat."""

    chat_id: str
    extent: Extent
    messages: int = 0


class Noticed(msgspec.Struct, frozen=True):
    """The time at which a loss was noticed, and the last row of the lost file then.

    Later rows exist only in that file.
    """

    at: float
    last_row: int | None


class Remains(msgspec.Struct, frozen=True):
    """The readable content of the lost file: the totals of its chats, and the logs of open chats.

    `closed`: chats that were closed between the notice and now. `scratch`: drafts, grants and similar rows: all rows of
    these chats, and rows of other chats newer than the notice; None = not readable. `learned`: calibrations.
    """

    totals: dict[str, Totals] = {}
    logs: dict[str, list[LogEvent]] = {}
    closed: tuple[LiveChat, ...] = ()
    scratch: tuple[ScratchRow, ...] | None = None
    learned: tuple[Calibration, ...] = ()


class Loss(msgspec.Struct, frozen=True):
    """The loss of the open file, and how it was recovered."""

    renewed: Renewed
    rebuilt: tuple[Rebuilt, ...] = ()
    remains: Remains = Remains()

    def sentence(self) -> str:
        """Return the message about the loss as a whole, without naming individual chats."""
        state = self.renewed.state
        if state == "sound":
            return "Chat history was briefly missing; nothing was lost"
        if self.renewed.is_whole:
            return f"Chat history {state} while open; restored, nothing was lost"
        again = sum(1 for chat in self.rebuilt if chat.extent not in ("taken", "failed"))
        kept = f"{counted(again, 'chat')} rebuilt" if again else "a new one is used"
        return f"Chat history {'replaced' if state == 'overwritten' else state}; {kept}; {SEE_RESTORE}"


def notice(lost: sqlite3.Connection, now: float) -> Noticed:
    """Return the current time and the last row of the lost file, when its loss is noticed."""
    with contextlib.suppress(sqlite3.Error):
        return Noticed(now, int(lost.execute("SELECT COALESCE(max(id), 0) FROM events").fetchone()[0]))
    return Noticed(now, None)


def read_remains(lost: sqlite3.Connection, live: Sequence[LiveChat], noticed: Noticed) -> Remains:
    """Return the content that can still be read from the lost file; unreadable parts are left out."""
    totals: dict[str, Totals] = {}
    logs: dict[str, list[LogEvent]] = {}
    rows: tuple[ScratchRow, ...] | None = None
    learned: tuple[Calibration, ...] = ()
    with contextlib.suppress(sqlite3.Error):
        totals = read_all_totals(lost)
    for chat in live:
        events = _read_log(lost, chat.chat_id)
        if events and project(events).messages == chat.view.messages:
            logs[chat.chat_id] = events
    closed = tuple(_closed_since(lost, noticed, {chat.chat_id for chat in live}, logs))
    with contextlib.suppress(sqlite3.Error):
        mine = {chat.chat_id for chat in (*live, *closed)}
        rows = tuple(row for row in scratch.read_rows(lost) if _is_to_keep(row, mine, noticed))
        learned = tuple(scratch.load_calibration(lost))
    return Remains(totals, logs, closed, rows, learned)


def _is_to_keep(row: ScratchRow, mine: set[str], noticed: Noticed) -> bool:
    return row.chat_id in mine or row.kind == "permits" or row.updated >= noticed.at


def _read_log(lost: sqlite3.Connection, chat_id: str) -> list[LogEvent]:
    """Return the whole log of a chat, or [] if part of it cannot be read."""
    with contextlib.suppress(sqlite3.Error):
        rows, unreadable = read_rows(lost, chat_id)
        whole, damaged = decode_rows(rows)
        return [] if unreadable or damaged else whole
    return []


def _closed_since(
    lost: sqlite3.Connection, noticed: Noticed, live: set[str], logs: dict[str, list[LogEvent]]
) -> Iterator[LiveChat]:
    """Yield the chats that have received messages since the notice and are no longer open."""
    if noticed.last_row is None:
        return
    with contextlib.suppress(sqlite3.Error):
        found = lost.execute("SELECT DISTINCT chat_id FROM events WHERE id > ?", (noticed.last_row,)).fetchall()
        for (chat_id,) in found:
            if chat_id not in live and (events := _read_log(lost, chat_id)):
                logs[chat_id] = events
                yield LiveChat(chat_id, project(events))


def with_newest(chat: LiveChat, written: Sequence[LogEvent]) -> LiveChat:
    """Return the chat with the events that are already stored but have not reached its view yet."""
    view = chat.view
    for event in written:
        if event.seq > view.last_seq:
            view = apply(view, event)
    return msgspec.structs.replace(chat, view=view)


def rebuild(
    connection: sqlite3.Connection,
    owner: Owner,
    live: Sequence[LiveChat],
    remains: Remains,
    now: float,
    new_id: Callable[[], str],
) -> tuple[Rebuilt, ...]:
    """Write the open chats into the new file, in the running transaction, which also makes them durable."""
    known_before = set(read_all_totals(connection))
    found = []
    for chat in (*live, *remains.closed):
        try:
            lease.acquire(connection, owner, chat.chat_id, now)
        except LeaseHeld:
            found.append(Rebuilt(chat.chat_id, "taken"))
            continue
        found.append(_write(connection, chat, remains, now, new_id))
    mine = {chat.chat_id for chat in found if chat.extent != "taken"}
    for chat in remains.closed:
        lease.release(connection, owner, chat.chat_id)
    _keep_scratch(connection, remains, mine)
    _keep_spending(connection, remains.totals, mine, known_before)
    return tuple(found)


def _keep_scratch(connection: sqlite3.Connection, remains: Remains, mine: set[str]) -> None:
    """Write drafts, grants and calibrations: all old rows of our chats, and the newer rows of other chats."""
    if remains.scratch is not None:
        for chat_id in mine:
            scratch.forget_chat(connection, chat_id)
        for row in remains.scratch:
            scratch.keep_newer(connection, row)
    known = {(one.adapter, one.model): one.updated for one in scratch.load_calibration(connection)}
    for learned in remains.learned:
        if learned.updated > known.get((learned.adapter, learned.model), 0.0):
            scratch.save_calibration(connection, learned)


def _write(
    connection: sqlite3.Connection, chat: LiveChat, remains: Remains, now: float, new_id: Callable[[], str]
) -> Rebuilt:
    rows, _ = read_rows(connection, chat.chat_id)
    there, _ = decode_rows(rows)
    count = len(chat.view.messages)
    if there and project(there).messages == chat.view.messages:
        return Rebuilt(chat.chat_id, "there", count)
    log = remains.logs.get(chat.chat_id)
    if log and log[: len(there)] == there:
        restore_events(connection, ((chat.chat_id, event) for event in log[len(there) :]))
        return Rebuilt(chat.chat_id, "whole", count)
    view = msgspec.structs.replace(chat.view, messages=tuple(map(chat.rewritten, chat.view.messages)))
    said = tuple(MessageAdded(message=message) for message in view.messages)
    payloads = (_exchange(there, view, new_id()),) if there else (*chat.opening, *said)
    append_events(
        connection, chat.chat_id, (*payloads, *chat.closing), now, after_seq=chat.view.last_seq,
        spent=remains.totals.get(chat.chat_id) if not there else None,
    )  # fmt: skip
    return Rebuilt(chat.chat_id, "view", count)


def _exchange(there: Sequence[LogEvent], view: View, change_id: str) -> ViewChanged:
    """Return the change from an older state to the current view; the older messages stay in the log."""
    inserted, after = [], ""
    for message in view.messages:
        inserted.append(Insertion(message=message, after=after))
        after = message.id
    old = project(there)
    return ViewChanged(
        change_id=change_id,
        kind="repaired",
        removed=tuple(message.id for message in old.messages),
        inserted=tuple(inserted),
        tokens_before=old.tokens,
        tokens_after=view.tokens,
    )


def _keep_spending(
    connection: sqlite3.Connection, totals: Mapping[str, Totals], live: set[str], known_before: set[str]
) -> None:
    """Count the cost of the other chats as the cost of deleted chats, so that no budget restarts from zero (R-358)."""
    gone = [row for chat_id, row in totals.items() if chat_id not in live and chat_id not in known_before]
    if gone and not known_before:
        usd, unpriced = sum(row.cost_usd for row in gone), sum(row.unpriced for row in gone)
        connection.execute("INSERT INTO deleted_spending(usd, unpriced) VALUES (?, ?)", (usd, unpriced))
