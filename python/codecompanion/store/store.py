"""The session store as the session sees it: one file per user, shared by all Neovims (design, "Store").

Writing methods return at once with a `concurrent.futures.Future`; it is resolved when the change is on disk, or fails
with a `StoreError` of one sentence. In a coroutine: `await durable(store.append(…))`. Reading methods return values
and take milliseconds: call them through `asyncio.to_thread` where that matters. All methods may be called from any
thread. `report` gets what no caller waits for (a repaired file, damaged rows, a draft that could not be kept), as
`StoreError`, from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import itertools
import logging
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from codecompanion.errors import StoreCorrupt, StoreError
from codecompanion.formats.plural import counted
from codecompanion.model.history import EventPayload, LogEvent
from codecompanion.store import lease
from codecompanion.store.damage.lost_file import FileWatch
from codecompanion.store.damage.rebuild import (
    LiveChat,
    Loss,
    Noticed,
    Rebuilt,
    Remains,
    notice,
    read_remains,
    rebuild,
    with_newest,
)
from codecompanion.store.database.connection import SEE_RESTORE, Database, create_private_file, explain
from codecompanion.store.database.writer import Writer, roll_back
from codecompanion.store.files.blobs import Blobs
from codecompanion.store.lease import Lease, Owner
from codecompanion.store.log import copying, deletion, scratch, sessions
from codecompanion.store.log.scratch import Calibration
from codecompanion.store.log.sessions import Row, SessionInfo, Spent
from codecompanion.store.search import find as search
from codecompanion.store.search.find import SearchHit
from codecompanion.store.search.inner_index import Completion, Step, is_complete

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
SWEEP_S = 5.0
"""So long the contents of deleted chats hold up the closing; what is left goes with the next deletion."""
Report = Callable[[StoreError], None]
Clock = Callable[[], float]


def suspicion_of(path: Path) -> Path:
    """Return the marker file that asks for a full check at the next opening."""
    return path.with_name(path.name + ".suspect")


async def durable(future: Future[T]) -> T:
    """Wait for a write of the store; when the waiting is cancelled the write still happens."""
    return await asyncio.wrap_future(future)


class Store:
    """An open session store; made by `open_store` or `open_memory_store`."""

    def __init__(self, database: Database, owner: Owner, blobs: Blobs, clock: Clock, report: Report) -> None:
        """Take over an open database and start its writer."""
        self._database = database
        self._owner = owner
        self._blobs = blobs
        self._clock = clock
        self._report = report
        self._last_reported = ""
        self._sweeps: set[Future[None]] = set()
        self.incidents: list[str] = []
        """What happened to the file while it was open, for `:checkhealth`."""
        is_indexed = is_complete(database.writer)
        self._newest: dict[str, list[LogEvent]] = {}
        self._noticed: Noticed | None = None
        self._live: Callable[[], Sequence[LiveChat]] = tuple
        self._on_loss: Callable[[Loss], None] = lambda loss: None
        self._writer = Writer(database, self._note_damage, self._renew, report)
        self._completion = Completion(self._submit_quietly, is_needed=not is_indexed)

    @property
    def path(self) -> Path | None:
        """The database file; None when everything is in memory and ends with the process."""
        return self._database.path

    # ---- the log

    def append(self, chat_id: str, payloads: Iterable[EventPayload]) -> Future[list[LogEvent]]:
        """Append to the chat's log, all or nothing; the future gives the events with their seqs once they are on disk.

        Appends to one chat are written in the order of the calls.

        Raises (in the future):
            LeaseHeld: another host owns the chat.
            StoreUnavailable: nothing was stored (disk full, read-only …); the same append may be tried again.
        """
        batch, now = tuple(payloads), self._clock()

        def run(connection: sqlite3.Connection) -> list[LogEvent]:
            lease.refuse_foreign(connection, self._owner, chat_id)
            return sessions.append_events(connection, chat_id, batch, now)

        future = self._writer.submit(run)
        future.add_done_callback(partial(self._keep_newest, chat_id))
        return future

    async def log(self, chat_id: str, *payloads: EventPayload) -> list[LogEvent]:
        """Append and wait until it is on disk; see `append`."""
        return await durable(self.append(chat_id, payloads))

    def load_events(self, chat_id: str, since: int = 0, until: int = sessions.NEWEST) -> list[LogEvent]:
        """Return the events with `since < seq <= until`; damaged ones are left out and reported."""
        with self._reading() as connection:
            rows, unreadable = sessions.read_rows(connection, chat_id, since, until)
        return self._decode(chat_id, rows, unreadable)

    def list_sessions(self, cwd: str | None = None, limit: int = 100, chat_id: str | None = None) -> list[SessionInfo]:
        """Return the stored chats (of one folder), newest first; or the one with an id, also an empty one."""
        with self._reading() as connection:
            rows = sessions.list_rows(connection, cwd=cwd, limit=limit, chat_id=chat_id, empty=chat_id is not None)
        return [self._with_owned(info, owner) for info, owner in rows]

    def find_session(self, chat_id: str) -> SessionInfo | None:
        """Return one stored chat, None when nothing was ever said in it."""
        with self._reading() as connection:
            rows = sessions.list_rows(connection, chat_id=chat_id)
        return self._with_owned(*rows[0]) if rows else None

    def knows(self, chat_id: str) -> bool:
        """Return whether there is such a chat, also one in which nothing was said."""
        with self._reading() as connection:
            return connection.execute("SELECT 1 FROM chats WHERE chat_id = ?", (chat_id,)).fetchone() is not None

    def last_seq(self, chat_id: str) -> int:
        """Return the number of the chat's newest event, 0 when there is no such chat."""
        with self._reading() as connection:
            totals = sessions.read_totals(connection, chat_id)
        return totals.last_seq if totals else 0

    def list_family(self, family: str) -> list[SessionInfo]:
        """Return the branches of a tree of chats (by its first chat), newest first."""
        with self._reading() as connection:
            rows = sessions.list_rows(connection, family=family, limit=1_000)
        return [self._with_owned(info, owner) for info, owner in rows]

    def fork(
        self,
        from_chat: str,
        chat_id: str,
        last_seq: int,
        left_out: Collection[int],
        payloads: Iterable[EventPayload],
        draft: str = "",
    ) -> Future[None]:
        """Make the chat `chat_id` out of the beginning of another one, with a draft; see `copying.copy_chat`."""
        batch, now = tuple(payloads), self._clock()

        def run(connection: sqlite3.Connection) -> None:
            copying.copy_chat(connection, from_chat, chat_id, last_seq, left_out, batch, now)
            scratch.save_text(connection, chat_id, "draft", draft, now)

        return self._writer.submit(run)

    def delete(self, chat_id: str) -> Future[int]:
        """Delete the chat with everything the database knows of it, and the contents only it used.

        The future gives the number of events; checkpoints are files of their own (`checkpoints`).

        Raises (in the future):
            LeaseHeld: another host owns the chat; nothing was deleted.
        """

        def run(connection: sqlite3.Connection) -> int:
            lease.refuse_foreign(connection, self._owner, chat_id)
            return deletion.delete_chat(connection, chat_id)

        future = self._writer.submit(run)
        names, swept = self._blobs.names(), Future[None]()
        self._sweeps.add(swept)
        # the rows are gone for good before the first file is
        future.add_done_callback(lambda done: self._delete_unused_blobs(done, names, swept))
        return future

    def _delete_unused_blobs(self, before: Future[int], names: Iterator[str], swept: Future[None]) -> None:
        """Go through the contents in slices: what is to be written meanwhile comes in between (in the writer's thread).

        What is left when the store is closed in the middle goes with the next deletion.
        """
        some: tuple[str, ...] = ()
        if before.exception() is None:
            try:
                some = tuple(itertools.islice(names, deletion.SLICE))
            except OSError as error:
                self._report(StoreError(f"Contents that no chat uses stay in the data folder: {error}"))
        if not some:
            self._sweeps.discard(swept)
            return swept.set_result(None)
        work = partial(deletion.delete_unused_blobs, blobs=self._blobs, names=some, now=self._clock())
        job = self._writer.submit(work, durable=False)
        job.add_done_callback(lambda done: self._delete_unused_blobs(done, names, swept))

    def spent(self, chat_id: str | None = None) -> Spent:
        """Return what a chat has cost so far, or all chats together; what was appended is in it at once."""
        with self._reading() as connection:
            return sessions.read_spent(connection, chat_id)

    def search(
        self, query: str, chat_id: str | None = None, limit: int = 50, seqs: Collection[int] | None = None
    ) -> list[SearchHit]:
        """Return the messages a question or some words may mean, best first; `seqs`: only these places of the log."""
        today = datetime.date.fromtimestamp(self._clock())
        with self._reading() as connection:
            return search.search_messages(connection, query, today, chat_id=chat_id, seqs=seqs, limit=limit)

    def index_completed(self) -> Future[None]:
        """Return what is done once everything an older version stored is in the index, or this store is closed."""
        return self._completion.ended

    # ---- leases

    def acquire(self, chat_id: str) -> Future[Lease]:
        """Own the chat until `release`, `close` or the end of this process.

        Raises (in the future):
            LeaseHeld: another living host owns it.
        """
        now = self._clock()
        future = self._writer.submit(lambda connection: lease.acquire(connection, self._owner, chat_id, now))
        future.add_done_callback(lambda done: self._owner.unclaim(chat_id) if done.exception() else None)
        return future

    def release(self, chat_id: str) -> Future[None]:
        """Give the chat back."""
        self._newest.pop(chat_id, None)
        return self._writer.submit(lambda connection: lease.release(connection, self._owner, chat_id))

    def foreign_lease(self, chat_id: str) -> Lease | None:
        """Return who else owns the chat now, None when it is free or ours."""
        with self._reading() as connection:
            return lease.foreign_lease(connection, self._owner, chat_id)

    # ---- contents

    def put_blob(self, content: bytes) -> str:
        """Store a large content and return its sha256; on disk on return. Large ones belong into a thread."""
        return self._blobs.put(content)

    def read_blob(self, sha256: str) -> bytes:
        """Return a stored content.

        Raises:
            StoreCorrupt: it is missing or damaged.
        """
        return self._blobs.read(sha256)

    # ---- scratch (survives a killed host; a failure is reported, and also in the future)

    def save_draft(self, chat_id: str, text: str) -> Future[None]:
        """Keep the text of the input region; logging it as a user message clears it. Not reported."""
        now = self._clock()
        return self._writer.submit(
            lambda connection: scratch.save_text(connection, chat_id, "draft", text, now), durable=False
        )

    def load_draft(self, chat_id: str) -> str:
        """Return the draft, "" when there is none."""
        with self._reading() as connection:
            return scratch.load_text(connection, chat_id, "draft")

    def save_partial(self, chat_id: str, text: str) -> Future[None]:
        """Keep what has arrived of the running reply; logging an assistant message clears it."""
        now = self._clock()
        return self._scratch(lambda connection: scratch.save_text(connection, chat_id, "partial", text, now))

    def save_grants(self, chat_id: str, text: str) -> Future[None]:
        """Keep what the user allowed in the chat, "" for nothing."""
        now = self._clock()
        return self._scratch(lambda connection: scratch.save_text(connection, chat_id, "grants", text, now))

    def load_grants(self, chat_id: str) -> str:
        """Return what the user allowed in the chat, "" for nothing."""
        with self._reading() as connection:
            return scratch.load_text(connection, chat_id, "grants")

    def save_permits(self, repository: str, text: str) -> Future[None]:
        """Keep which files outside of a repository its rules may bring in."""
        now, key = self._clock(), sessions.storable(repository)
        return self._scratch(lambda connection: scratch.save_text(connection, key, "permits", text, now))

    def load_permits(self, repository: str) -> str:
        """Return what was kept of the repository, "" for nothing."""
        with self._reading() as connection:
            return scratch.load_text(connection, sessions.storable(repository), "permits")

    def load_partial(self, chat_id: str) -> str:
        """Return the reply a killed host was receiving, "" when there is none."""
        with self._reading() as connection:
            return scratch.load_text(connection, chat_id, "partial")

    def clear_partial(self, chat_id: str) -> Future[None]:
        """Forget the partial reply."""
        return self._scratch(lambda connection: scratch.clear_text(connection, chat_id, "partial"))

    def save_calibration(self, learned: Calibration) -> Future[None]:
        """Keep what the counter learned of a model."""
        adapter, model = sessions.storable(learned.adapter), sessions.storable(learned.model)
        kept = msgspec.structs.replace(learned, adapter=adapter, model=model, updated=self._clock())
        return self._scratch(lambda connection: scratch.save_calibration(connection, kept))

    def load_calibration(self) -> list[Calibration]:
        """Return everything the counter learned, by adapter and model."""
        with self._reading() as connection:
            return scratch.load_calibration(connection)

    # ---- end and upkeep

    def check(self) -> list[str]:
        """Return what SQLite's own check finds wrong with the file, [] when it is sound (`:checkhealth`).

        Reads the whole file. What is found is repaired the next time the file is opened.
        """
        try:
            with self._reading() as connection:
                lines = [str(row[0]) for row in connection.execute("PRAGMA quick_check(20)")]
        except StoreCorrupt as error:  # so damaged that the check itself gives up
            return [str(error)]
        if lines == ["ok"]:
            return []
        self._note_damage(StoreCorrupt(lines[0]))
        return lines

    def close(self) -> None:
        """Write what is queued, give all chats back, close the file. Safe to call twice."""
        wait(tuple(self._sweeps), SWEEP_S)
        self._completion.stop()
        self._writer.submit(
            lambda connection: connection.execute("DELETE FROM leases WHERE owner = ?", (self._owner.id,)).rowcount,
            durable=False,
        )
        self._writer.close()
        self._database.close()
        self._owner.close()

    async def aclose(self) -> None:
        """Close without blocking the loop."""
        await asyncio.to_thread(self.close)

    # ---- a lost file

    def watch_over(self, live: Callable[[], Sequence[LiveChat]], on_loss: Callable[[Loss], None]) -> None:
        """Write the chats that `live` tells into the new file once the open one is lost, and tell `on_loss`.

        Both are called in any thread, and must not use the store.
        """
        self._live, self._on_loss = live, on_loss

    def _renew(self, watch: FileWatch) -> bool:
        """Use a good file in the place of the lost one, with all of it that can be had; the write lock is held.

        Return False when it is to be asked again later.
        """
        live = [with_newest(chat, self._newest.get(chat.chat_id, ())) for chat in self._live()]
        noticed = self._noticed = self._noticed or notice(self._database.writer, self._clock())

        def look_back(lost: sqlite3.Connection) -> Remains:
            self._owner.lock_again()
            return read_remains(lost, live, noticed)

        found = watch.renew(look_back)
        if found is None:
            return False
        self._noticed = None
        renewed, remains = found
        rebuilt = () if renewed.is_whole else self._rebuild(live, remains)
        loss = Loss(renewed, rebuilt, remains)
        self.incidents.append(loss.sentence())
        self._report(StoreCorrupt(loss.sentence()))
        self._on_loss(loss)
        return True

    def _rebuild(self, live: Sequence[LiveChat], remains: Remains) -> tuple[Rebuilt, ...]:
        connection = self._database.writer
        try:
            connection.execute("BEGIN IMMEDIATE")
            rebuilt = rebuild(connection, self._owner, live, remains, self._clock(), lambda: secrets.token_hex(6))
            connection.execute("COMMIT")
        except Exception as error:  # whatever it is, the writer goes on with the next job
            roll_back(connection)
            self._report(explain(error, self._database.path))
            return tuple(Rebuilt(chat.chat_id, "failed") for chat in live)
        return rebuilt

    def _keep_newest(self, chat_id: str, future: Future[list[LogEvent]]) -> None:
        """Remember what was written last of a chat until its host has it in its view."""
        if future.exception() is None:
            self._newest[chat_id] = future.result()

    # ---- inside

    def _submit_quietly(self, step: Step) -> Future[bool]:
        """Queue a step that nobody waits for; it is not flushed to the disk by itself."""
        return self._writer.submit(step, durable=False)

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
        future = self._writer.submit(run, durable=False)
        future.add_done_callback(self._report_failure)
        return future

    def _report_failure(self, future: Future[None]) -> None:
        """Report a failure nobody may be waiting for, but the same one not every second."""
        error = future.exception()
        if error is None:
            self._last_reported = ""
        elif isinstance(error, StoreError) and str(error) != self._last_reported:
            self._last_reported = str(error)
            self._report(error)

    def _decode(self, chat_id: str, rows: Sequence[Row], unreadable: list[int]) -> list[LogEvent]:
        events, damaged = sessions.decode_rows(rows)
        missing = sorted({*unreadable, *damaged})
        if missing:
            shown = ", ".join(map(str, missing[:5])) + (" …" if len(missing) > 5 else "")
            _LOG.warning("chat %s: damaged entries %s", chat_id, shown)
            text = f"{counted(len(missing), 'damaged entry', 'damaged entries')} left out of this chat; {SEE_RESTORE}"
            problem = StoreCorrupt(text)
            self._note_damage(problem)
            self._report(problem)
        return events

    def _note_damage(self, error: StoreError) -> None:
        """Have the file checked in full and repaired the next time it is opened."""
        path = self._database.path
        if path and isinstance(error, StoreCorrupt):
            with contextlib.suppress(OSError):
                create_private_file(suspicion_of(path))

    def _with_owned(self, info: SessionInfo, owner: str | None) -> SessionInfo:
        owned = owner is not None and owner != self._owner.id and self._owner.is_alive(owner)
        return msgspec.structs.replace(info, owned=owned)
