"""Provides the session store: one file per user, shared by all Neovim processes (design, "Store").

Writing methods return at once with a `concurrent.futures.Future`; it is resolved when the change is on disk, or fails
with a one-sentence `StoreError`. In a coroutine: `await durable(store.append(…))`. Reading methods return values and
take milliseconds: call them through `asyncio.to_thread` where that matters. All methods may be called from any thread.
`report` receives, as `StoreError` and from any thread, errors that no caller waits for (a repaired file, damaged rows,
a draft that could not be saved). The module is longer than 350 lines, because it is the single interface to everything
stored: short methods that delegate.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from codecompanion.errors import StoreCorrupt, StoreError
from codecompanion.formats.plural import counted
from codecompanion.model.history import EventPayload, LogEvent, UsageReported
from codecompanion.model.messages import Message
from codecompanion.store import lease
from codecompanion.store.damage.renewal import Renewal
from codecompanion.store.files.blobs import Blobs
from codecompanion.store.lease import Lease, Owner
from codecompanion.store.log import event_rows, scratch
from codecompanion.store.log.deletion import Sweeper
from codecompanion.store.log.encoding import storable
from codecompanion.store.log.event_rows import Row
from codecompanion.store.log.scratch import Calibration
from codecompanion.store.log.tail_state import TailState, read_state, save_state
from codecompanion.store.log.totals import SessionInfo, Spent, list_rows, read_spent, read_totals, read_unpriced
from codecompanion.store.search.inner_index import Completion, is_complete
from codecompanion.store.sqlite_connection import SEE_RESTORE, Database, create_private_file
from codecompanion.store.writer_thread import Writer

if TYPE_CHECKING:
    from codecompanion.store.search.find import SearchHit

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
Report = Callable[[StoreError], None]
Clock = Callable[[], float]


def suspicion_of(path: Path) -> Path:
    """Return the path of the marker file that requests a full check when the database is next opened."""
    return path.with_name(path.name + ".suspect")


async def durable(future: Future[T]) -> T:
    """Wait for a write of the store; if the wait is cancelled, the write still happens."""
    return await asyncio.wrap_future(future)


class Store:
    """An open session store; created by `open_store` or `open_memory_store`."""

    def __init__(self, database: Database, owner: Owner, blobs: Blobs, clock: Clock, report: Report) -> None:
        """Take over an open database and start its writer."""
        self._database = database
        self._owner = owner
        self._blobs = blobs
        self._clock = clock
        self._report = report
        self._last_reported = ""
        is_indexed = is_complete(database.writer)
        self._renewal = Renewal(database, owner, clock, report)
        self.incidents = self._renewal.incidents
        """Incidents with the open file, for `:checkhealth`."""
        self.watch_over = self._renewal.watch_over
        self._writer = Writer(database, self._note_damage, self._renewal.renew, report)
        self._sweeper = Sweeper(blobs, self._submit_quietly, clock, report)
        self._completion = Completion(self._submit_quietly, is_needed=not is_indexed)

    @property
    def path(self) -> Path | None:
        """The database file; None for a store in memory, which ends with the process."""
        return self._database.path

    # ---- the log

    def append(
        self, chat_id: str, payloads: Iterable[EventPayload], *, after_seq: int = 0, at: float | None = None
    ) -> Future[list[LogEvent]]:
        """Append to the chat's log atomically; the future returns the events with their seqs once they are on disk.

        Appends to one chat are written in call order. `after_seq`: continue numbering after this number, even if the
        log ends earlier. `at`: the time of the events in seconds since the epoch (None: now).

        The returned future may raise: LeaseHeld: another host owns the chat. StoreUnavailable: nothing was stored (disk
        full, read-only …); the same append may be retried.
        """
        batch, now = tuple(payloads), self._clock() if at is None else at

        def run(connection: sqlite3.Connection) -> list[LogEvent]:
            lease.refuse_foreign(connection, self._owner, chat_id)
            return event_rows.append_events(connection, chat_id, batch, now, after_seq=after_seq)

        future = self._writer.submit(run)
        future.add_done_callback(partial(self._renewal.keep_newest, chat_id))
        return future

    async def log(self, chat_id: str, *payloads: EventPayload) -> list[LogEvent]:
        """Append events and wait until they are on disk; see `append`."""
        return await durable(self.append(chat_id, payloads))

    def load_events(self, chat_id: str, since: int = 0, until: int = event_rows.NEWEST) -> list[LogEvent]:
        """Return the events with `since < seq <= until`; damaged ones are left out and reported."""
        with self._reading() as connection:
            rows, unreadable = event_rows.read_rows(connection, chat_id, since, until)
        return self._decode(chat_id, rows, unreadable)

    def read_tail(self, chat_id: str, limit: int) -> tuple[list[LogEvent], TailState] | None:
        """Return the chat's newest events, up to `limit`, and the state of its log; see `event_rows.read_tail`."""
        with self._reading() as connection:
            return event_rows.read_tail(connection, chat_id, limit)

    def save_tail_state(self, chat_id: str, state: TailState) -> Future[None]:
        """Save the state computed from the chat's whole log, unless the log has grown since.

        Failures are not reported.
        """

        def run(connection: sqlite3.Connection) -> None:
            newest = connection.execute("SELECT max(seq) FROM events WHERE chat_id = ?", (chat_id,)).fetchone()[0]
            if newest == state.covers_seq and read_state(connection, chat_id) != state:
                save_state(connection, chat_id, state)

        return self._submit_quietly(run)

    def read_log(self, chat_id: str) -> tuple[list[LogEvent], list[int]]:
        """Return the chat's events and the sequence numbers of damaged ones, without reporting the damage."""
        with self._reading() as connection:
            rows, unreadable = event_rows.read_rows(connection, chat_id)
        found, damaged = event_rows.decode_rows(rows)
        missing = sorted({*unreadable, *damaged})
        if missing:
            self._note_damage(StoreCorrupt("damaged entries"))
        return found, missing

    def restore_messages(self, chat_id: str, restored: Mapping[int, Message]) -> Future[int]:
        """Write messages where the log is damaged, by sequence number; the future returns the number of rows written.

        The returned future may raise: LeaseHeld: another host owns the chat. StoreError: a page is damaged; the file is
        repaired when it is next opened.
        """
        now = self._clock()

        def run(connection: sqlite3.Connection) -> int:
            lease.refuse_foreign(connection, self._owner, chat_id)
            return event_rows.restore_messages(connection, chat_id, restored, now)

        return self._writer.submit(run)

    def newest_seqs(self) -> dict[str, int]:
        """Return the newest sequence number of each chat, keyed by chat id."""
        with self._reading() as connection:
            return dict(connection.execute("SELECT chat_id, last_seq FROM chats"))

    def restore_totals(self) -> Future[list[str]]:
        """Recount chats whose row of totals is damaged or missing; the future returns their ids."""
        return self._writer.submit(event_rows.restore_totals)

    def list_sessions(self, cwd: str | None = None, limit: int = 100, chat_id: str | None = None) -> list[SessionInfo]:
        """Return the stored chats, newest first, optionally only those of one folder.

        With `chat_id`, return only that chat, even if it is empty.
        """
        with self._reading() as connection:
            rows = list_rows(connection, cwd=cwd, limit=limit, chat_id=chat_id, empty=chat_id is not None)
            return self._listed(connection, rows)

    def _listed(
        self, connection: sqlite3.Connection, rows: Iterable[tuple[SessionInfo, str | None]]
    ) -> list[SessionInfo]:
        from codecompanion.store.log.list_details import with_details  # not needed at startup

        return with_details(connection, [self._with_owned(info, owner) for info, owner in rows])

    def find_session(self, chat_id: str) -> SessionInfo | None:
        """Return one stored chat, or None if it has no messages."""
        with self._reading() as connection:
            rows = list_rows(connection, chat_id=chat_id)
            found = self._listed(connection, rows)
        return found[0] if found else None

    def knows(self, chat_id: str) -> bool:
        """Return whether the chat exists, with or without messages."""
        with self._reading() as connection:
            return connection.execute("SELECT 1 FROM chats WHERE chat_id = ?", (chat_id,)).fetchone() is not None

    def last_seq(self, chat_id: str) -> int:
        """Return the sequence number of the chat's newest event, or 0 when the chat does not exist."""
        with self._reading() as connection:
            totals = read_totals(connection, chat_id)
        return totals.last_seq if totals else 0

    def list_family(self, family: str) -> list[SessionInfo]:
        """Return the chats in the tree whose first chat is `family`, newest first."""
        with self._reading() as connection:
            rows = list_rows(connection, family=family, limit=1_000)
            return self._listed(connection, rows)

    def fork(
        self,
        from_chat: str,
        chat_id: str,
        last_seq: int,
        left_out: Collection[int],
        payloads: Iterable[EventPayload],
        draft: str = "",
    ) -> Future[None]:
        """Create the chat `chat_id` from the beginning of `from_chat`, with a draft; see `copying.copy_chat`."""
        batch, now = tuple(payloads), self._clock()

        from codecompanion.store.log import copying  # not needed at startup

        def run(connection: sqlite3.Connection) -> None:
            copying.copy_chat(connection, from_chat, chat_id, last_seq, left_out, batch, now)
            scratch.save_text(connection, chat_id, "draft", draft, now)

        return self._writer.submit(run)

    def delete(self, chat_id: str) -> Future[int]:
        """Delete the chat with all its rows, and the blobs that only it used.

        The future returns the number of events deleted; checkpoints are separate files (`checkpoints`).

        Raises (in the future):
            LeaseHeld: another host owns the chat; nothing was deleted.
        """
        from codecompanion.store.log import deletion  # not needed at startup

        def run(connection: sqlite3.Connection) -> int:
            lease.refuse_foreign(connection, self._owner, chat_id)
            return deletion.delete_chat(connection, chat_id)

        future = self._writer.submit(run)
        self._sweeper.sweep_after(future)
        return future

    def spent(self, chat_id: str | None = None) -> Spent:
        """Return the cost so far of a chat, or of all chats; appended events count immediately."""
        with self._reading() as connection:
            return read_spent(connection, chat_id)

    def unpriced(self) -> list[UsageReported]:
        """Return the usage reports without a price of all chats."""
        with self._reading() as connection:
            return read_unpriced(connection)

    def search(
        self, query: str, chat_id: str | None = None, limit: int = 50, seqs: Collection[int] | None = None
    ) -> list[SearchHit]:
        """Return the messages that match a question or keywords, best first.

        `seqs` limits the search to these positions.
        """
        today = datetime.date.fromtimestamp(self._clock())
        with self._reading() as connection:
            from codecompanion.store.search.find import search_messages  # not needed at startup

            return search_messages(connection, query, today, chat_id=chat_id, seqs=seqs, limit=limit)

    def index_completed(self) -> Future[None]:
        """Return a future that is resolved once all messages of older versions are indexed, or on closing."""
        return self._completion.ended

    # ---- leases

    def acquire(self, chat_id: str) -> Future[Lease]:
        """Take ownership of the chat until `release`, `close` or the end of this process.

        Raises (in the future):
            LeaseHeld: another living host owns it.
        """
        now = self._clock()
        future = self._writer.submit(lambda connection: lease.acquire(connection, self._owner, chat_id, now))
        future.add_done_callback(lambda done: self._owner.unclaim(chat_id) if done.exception() else None)
        return future

    def release(self, chat_id: str) -> Future[None]:
        """Release the chat."""
        self._renewal.forget(chat_id)
        return self._writer.submit(lambda connection: lease.release(connection, self._owner, chat_id))

    def foreign_lease(self, chat_id: str) -> Lease | None:
        """Return the lease of another owner of the chat, or None when it is free or ours."""
        with self._reading() as connection:
            return lease.foreign_lease(connection, self._owner, chat_id)

    # ---- contents

    def put_blob(self, content: bytes) -> str:
        """Write a blob to disk and return its sha256. Use a thread for large blobs."""
        return self._blobs.put(content)

    def read_blob(self, sha256: str) -> bytes:
        """Return the bytes of a stored blob.

        Raises:
            StoreCorrupt: it is missing or damaged.
        """
        return self._blobs.read(sha256)

    # ---- scratch (survives a killed host; a failure is reported, and also raised by the future)

    def save_draft(self, chat_id: str, text: str, copy: str = "") -> Future[None]:
        """Save the text of the input region as a draft, which logging a user message clears. Failures are not reported.

        `copy` names a copy of another owner's chat; text typed there is stored separately.
        """
        now, kind = self._clock(), scratch.copy_kind(self._owner.id, copy) if copy else "draft"
        return self._submit_quietly(lambda connection: scratch.save_text(connection, chat_id, kind, text, now))

    def take_drafts(self, chat_id: str, copy: str, *, owned: bool) -> Future[tuple[str, str]]:
        """Return the draft, and the text typed into copies whose hosts are gone; see `scratch.take_drafts`."""
        now, kind = self._clock(), "draft" if owned else scratch.copy_kind(self._owner.id, copy)

        def is_gone(owner: str) -> bool:
            return owner == self._owner.id or not self._owner.is_alive(owner)

        return self._submit_quietly(
            lambda connection: scratch.take_drafts(connection, chat_id, copy, kind, is_gone, now)
        )

    def load_draft(self, chat_id: str) -> str:
        """Return the draft, or "" when there is none."""
        return self._load_text(chat_id, "draft")

    def save_partial(self, chat_id: str, text: str) -> Future[None]:
        """Save the running reply as received so far; logging an assistant message clears it."""
        return self._save_text(chat_id, "partial", text)

    def save_grants(self, chat_id: str, text: str) -> Future[None]:
        """Save the permissions granted in the chat, or "" for none."""
        return self._save_text(chat_id, "grants", text)

    def load_grants(self, chat_id: str) -> str:
        """Return the permissions granted in the chat, or "" for none."""
        return self._load_text(chat_id, "grants")

    def load_partial(self, chat_id: str) -> str:
        """Return the partial reply that a killed host left, or ""."""
        return self._load_text(chat_id, "partial")

    def clear_partial(self, chat_id: str) -> Future[None]:
        """Delete the partial reply."""
        return self._scratch(lambda connection: scratch.clear_text(connection, chat_id, "partial"))

    def save_calibration(self, learned: Calibration) -> Future[None]:
        """Save the calibration of a model."""
        adapter, model = storable(learned.adapter), storable(learned.model)
        kept = msgspec.structs.replace(learned, adapter=adapter, model=model, updated=self._clock())
        return self._scratch(lambda connection: scratch.save_calibration(connection, kept))

    def load_calibration(self) -> list[Calibration]:
        """Return all calibrations, by adapter and model."""
        with self._reading() as connection:
            return scratch.load_calibration(connection)

    # ---- closing and maintenance

    def check(self) -> list[str]:
        """Return the problems found by SQLite's own check, or [] when the file is valid (`:checkhealth`).

        This reads the whole file. Damage is repaired the next time the file is opened.
        """
        try:
            with self._reading() as connection:
                lines = [str(row[0]) for row in connection.execute("PRAGMA quick_check(20)")]
        except StoreCorrupt as error:  # too damaged even for the check
            return [str(error)]
        if lines == ["ok"]:
            return []
        self._note_damage(StoreCorrupt(lines[0]))
        return lines

    def close(self) -> None:
        """Write queued changes, release all chats, close the file. Safe to call twice."""
        self._sweeper.wait()
        self._completion.stop()
        self._submit_quietly(lambda connection: lease.release_all(connection, self._owner))
        self._writer.close()
        self._database.close()
        self._owner.close()

    async def aclose(self) -> None:
        """Close the store without blocking the event loop."""
        await asyncio.to_thread(self.close)

    # ---- internals

    def _submit_quietly(self, job: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Queue a change that no caller awaits; it reaches the disk only with later changes."""
        return self._writer.submit(job, durable=False)

    def _save_text(self, key: str, kind: scratch.Kind, text: str) -> Future[None]:
        now = self._clock()
        return self._scratch(lambda connection: scratch.save_text(connection, key, kind, text, now))

    def _load_text(self, key: str, kind: scratch.Kind) -> str:
        with self._reading() as connection:
            return scratch.load_text(connection, key, kind)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        self._writer.look_after_file()
        try:
            with self._database.reading() as connection:
                yield connection
        except StoreCorrupt as error:
            self._note_damage(error)
            raise

    def _scratch(self, run: Callable[[sqlite3.Connection], None]) -> Future[None]:
        future = self._submit_quietly(run)
        future.add_done_callback(self._report_failure)
        return future

    def _report_failure(self, future: Future[None]) -> None:
        """Report a failure that might otherwise go unnoticed, unless it was just reported."""
        error = future.exception()
        if error is None:
            self._last_reported = ""
        elif isinstance(error, StoreError) and str(error) != self._last_reported:
            self._last_reported = str(error)
            self._report(error)

    def _decode(self, chat_id: str, rows: Sequence[Row], unreadable: list[int]) -> list[LogEvent]:
        readable, damaged = event_rows.decode_rows(rows)
        missing = sorted({*unreadable, *damaged})
        if missing:
            shown = ", ".join(map(str, missing[:5])) + (" …" if len(missing) > 5 else "")
            _LOG.warning("chat %s: damaged entries %s", chat_id, shown)
            text = f"{counted(len(missing), 'damaged entry', 'damaged entries')} left out of this chat; {SEE_RESTORE}"
            problem = StoreCorrupt(text)
            self._note_damage(problem)
            self._report(problem)
        return readable

    def _note_damage(self, error: StoreError) -> None:
        """Request a full check and repair of the file for the next time it is opened."""
        path = self._database.path
        if path and isinstance(error, StoreCorrupt):
            with contextlib.suppress(OSError):
                create_private_file(suspicion_of(path))

    def _with_owned(self, info: SessionInfo, owner: str | None) -> SessionInfo:
        owned = owner is not None and owner != self._owner.id and self._owner.is_alive(owner)
        return msgspec.structs.replace(info, owned=owned)
