"""The one thread that writes: jobs queue up, what waits together shares one transaction (group commit).

A future is resolved only after the commit that holds its job is on disk (WAL, `synchronous=FULL`). Jobs run in the
order they were submitted. Each has its own savepoint, so a failing job takes back only its own writes; when SQLite
gives up the whole transaction (disk full), every job of the group is tried again alone, so a job must be a plain
function of the connection. Jobs that need no durability (drafts) skip the fsync when no other job rides along: they
survive a killed process, not a power cut.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from codecompanion.errors import StoreError, StoreUnavailable
from codecompanion.store.db import Database, explain
from codecompanion.store.lost_file import FileWatch

T = TypeVar("T")

MAX_GROUP = 256
CHECKPOINT_BYTES = 4 * 1024 * 1024
LOOK_EVERY_S = 2.0


class _Job(NamedTuple):
    run: Callable[[sqlite3.Connection], Any]
    future: Future[Any]
    durable: bool


_Outcome = tuple[_Job, Any, Exception | None]


class Writer:
    """Owns the write connection of a `Database`."""

    def __init__(
        self,
        database: Database,
        on_error: Callable[[StoreError], None],
        renew: Callable[[FileWatch], None] = lambda watch: None,
    ) -> None:
        """Start the thread. `on_error` is told of every failed job, in that thread.

        `renew` brings back what it can once the file is lost, with the write lock held.
        """
        self._database = database
        self._on_error, self._renew = on_error, renew
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closed = self._gone = False
        self._durable: bool | None = None
        path = database.path
        self._wal = path.with_name(path.name + "-wal") if path else None
        self._watch = FileWatch(database)
        self._set_up()
        self._thread = threading.Thread(target=self._work, name="codecompanion-store", daemon=True)
        self._thread.start()

    def _set_up(self) -> None:
        if self._wal:
            # Checkpoints are made after the futures are resolved: nobody waits for them.
            self._database.writer.execute("PRAGMA wal_autocheckpoint = 0")
            self._database.writer.execute(f"PRAGMA journal_size_limit = {CHECKPOINT_BYTES}")
        self._durable = None

    def look_after_file(self) -> None:
        """Go on with a good file when the open one was deleted, emptied or replaced; a few microseconds otherwise."""
        if self._watch.state() != "sound":
            with self._database.write_lock:
                self._look_after_file()

    def _look_after_file(self) -> None:
        if self._watch.state() == "sound" or self._gone:
            return
        try:
            self._renew(self._watch)
            self._set_up()
        except (sqlite3.Error, OSError, StoreError) as error:
            self._on_error(explain(error, self._database.path))

    def submit(self, run: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> Future[T]:
        """Queue a job and return at once; the future gives what the job returned, after the commit.

        The future cannot be cancelled: what was handed over is written.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._gate:
            if self._closed:
                future.set_exception(StoreUnavailable("the session store is closed"))
            else:
                self._queue.put(_Job(run, future, durable))
        return future

    def close(self) -> None:
        """Write what is queued, then end the thread; further jobs fail. Safe to call twice."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            group: list[_Job] = []
            job = self._next()
            while job is not None:
                group.append(job)
                if len(group) == MAX_GROUP:
                    break
                try:
                    job = self._queue.get_nowait()
                except Empty:
                    break
            if group:
                with self._database.write_lock:
                    self._look_after_file()
                    outcomes = self._write(group)
                for done, result, failure in outcomes:
                    self._resolve(done, result, failure)
                with self._database.write_lock:
                    self._checkpoint()
            if job is None:
                with self._database.write_lock:
                    self._gone = True
                return

    def _next(self) -> _Job | None:
        """Wait for the next job, looking after the file meanwhile: an idle chat is told of a loss, too."""
        while self._wal is not None:
            try:
                return self._queue.get(timeout=LOOK_EVERY_S)
            except Empty:
                self.look_after_file()
        return self._queue.get()

    def _write(self, group: list[_Job]) -> list[_Outcome]:
        connection = self._database.writer
        try:
            self._begin(connection, durable=any(job.durable for job in group))
            outcomes = [(job, *_run(connection, job)) for job in group]
            connection.execute("COMMIT")
        except Exception as error:
            _roll_back(connection)
            if len(group) == 1:
                return [(group[0], None, error)]
            return [outcome for job in group for outcome in self._write([job])]
        return outcomes

    def _begin(self, connection: sqlite3.Connection, *, durable: bool) -> None:
        if durable != self._durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        connection.execute("BEGIN IMMEDIATE")

    def _resolve(self, job: _Job, result: Any, failure: Exception | None) -> None:
        if failure is None:
            job.future.set_result(result)
            return
        error = explain(failure, self._database.path)
        error.__cause__ = failure if failure is not error else failure.__cause__
        job.future.set_exception(error)
        self._on_error(error)

    def _checkpoint(self) -> None:
        """Fold a grown WAL into the database; a failure here loses nothing and is met again by the next write."""
        if self._wal is None:
            return
        try:
            if self._wal.stat().st_size > CHECKPOINT_BYTES:
                self._database.writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except FileNotFoundError:
            return
        except (sqlite3.Error, OSError) as error:
            self._on_error(explain(error, self._database.path))


def _run(connection: sqlite3.Connection, job: _Job) -> tuple[Any, Exception | None]:
    """Run the job inside its savepoint; raise only when the transaction itself is gone."""
    connection.execute("SAVEPOINT job")
    try:
        result = job.run(connection)
    except Exception as error:
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
        return None, error
    connection.execute("RELEASE job")
    return result, None


def _roll_back(connection: sqlite3.Connection) -> None:
    """End a failed transaction; SQLite may have done so itself."""
    if connection.in_transaction:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            # A rollback fails only when there is nothing left to roll back.
            return
