"""Runs the single writer thread: jobs are queued, and jobs that wait together share a transaction (group commit).

A future is resolved only after the commit of its job is on disk (WAL, `synchronous=FULL`). Jobs run in the order they
were submitted. Each has its own savepoint, so a failing job undoes only its own writes; if SQLite aborts the whole
transaction (disk full), every job of the group is retried alone, so a job must be a plain function of the connection.
Jobs that need no durability (drafts) skip the fsync if no durable job shares the transaction: they survive a killed
process, not a power cut.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from codecompanion.errors import StoreError, StoreUnavailable
from codecompanion.store.damage.lost_file import SETTLE_S, FileWatch
from codecompanion.store.damage.marks import change_mark
from codecompanion.store.sqlite_connection import Database, explain, roll_back

T = TypeVar("T")

MAX_GROUP = 256
CHECKPOINT_BYTES = 4 * 1024 * 1024
LOOK_EVERY_S = 2.0
RETRY_S, RETRY_MAX_S = 2.0, 60.0
_LOG = logging.getLogger(__name__)


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
        renew: Callable[[FileWatch], bool] = lambda watch: True,
        tell: Callable[[StoreError], None] = lambda problem: None,
    ) -> None:
        """Start the thread. `on_error` receives the error of every failed job, in that thread.

        `renew` recovers from a lost file, under the write lock, and returns False while it has to wait. `tell` is
        called once if the recovery fails.
        """
        self._database = database
        self._on_error, self._renew, self._tell = on_error, renew, tell
        self._retry_at, self._retry_s, self._told = 0.0, RETRY_S, ""
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
            # Checkpoints run after the futures are resolved, so no caller waits for them.
            self._database.writer.execute("PRAGMA wal_autocheckpoint = 0")
            self._database.writer.execute(f"PRAGMA journal_size_limit = {CHECKPOINT_BYTES}")
        self._durable = None

    def look_after_file(self) -> None:
        """Switch to a good file if the open one was deleted, emptied or replaced; takes microseconds otherwise."""
        if self._watch.state() != "sound" and time.monotonic() >= self._retry_at:
            with self._database.write_lock:
                self._look_after_file()

    def _look_after_file(self) -> None:
        if self._gone or self._watch.state() == "sound" or time.monotonic() < self._retry_at:
            return
        try:
            if self._renew(self._watch):
                self._retry_at, self._retry_s, self._told = 0.0, RETRY_S, ""
            else:
                self._retry_at = time.monotonic() + SETTLE_S
            self._set_up()
        except Exception as error:
            roll_back(self._database.writer)
            self._retry_at = time.monotonic() + self._retry_s
            self._retry_s = min(2 * self._retry_s, RETRY_MAX_S)
            self._tell_once(error)

    def _look_a_last_time(self) -> None:
        """Check the file one last time, letting a replacement settle, because the lost file has newer messages."""
        for pause in (0.0, SETTLE_S if self._watch.state() == "replaced" else 0.0):
            time.sleep(pause)
            with self._database.write_lock:
                self._retry_at = 0.0
                self._look_after_file()

    def _tell_once(self, error: Exception) -> None:
        """Report, once, that the lost file cannot be replaced."""
        problem = explain(error, self._database.path)
        if problem is not error:
            problem = StoreUnavailable(f"Chat history {self._watch.state()} while open; cannot restore it: {problem}")
        if str(problem) != self._told:
            self._told = str(problem)
            _calmly(self._tell, problem)

    def submit(self, run: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> Future[T]:
        """Queue a job and return immediately; the future returns the job's result after the commit.

        The future cannot be cancelled: a submitted job always runs.
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
        """Write queued jobs, then end the thread; further jobs fail. Safe to call twice."""
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
            if job is None:
                self._look_a_last_time()
            if group:
                self._serve(group)
            if job is None:
                with self._database.write_lock:
                    self._gone = True
                    self._leave()
                return

    def _leave(self) -> None:
        """Mark the file one last time, or merge the log into the file if it was deleted, emptied or replaced.

        The log is never merged into a file that was copied over the database: SQLite would do that on closing, so the
        file is moved away first.
        """
        match self._watch.state():
            case "sound":
                self._change_mark(flush=False)
            case "overwritten":
                self._watch.close_aside()
            case _:
                self._database.fold_in()

    def _change_mark(self, *, flush: bool) -> bool:
        """Give the file a new mark, to tell it from its earlier states; return False if the log must not be merged."""
        if self._database.path is None:
            return False
        try:
            if not flush:
                self._database.writer.execute("PRAGMA synchronous = NORMAL")
            return change_mark(self._database.path.resolve(), self._database.writer, flush=flush)
        except (sqlite3.Error, OSError) as error:
            _calmly(self._on_error, explain(error, self._database.path))
            return False

    def _serve(self, group: list[_Job]) -> None:
        outcomes: list[_Outcome]
        try:
            with self._database.write_lock:
                self._look_after_file()
                outcomes = self._write(group)
        except Exception as error:  # every future must be resolved
            outcomes = [(job, None, error) for job in group]
        for done, result, failure in outcomes:
            self._resolve(done, result, failure)
        with self._database.write_lock:
            self._checkpoint()

    def _next(self) -> _Job | None:
        """Wait for the next job, checking the file meanwhile, so that a loss is noticed even while chats are idle."""
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
            roll_back(connection)
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
        _calmly(self._on_error, error)

    def _checkpoint(self) -> None:
        """Merge a large WAL into the database; a failure here loses nothing and reappears at the next write."""
        if self._wal is None:
            return
        try:
            is_grown = self._wal.stat().st_size > CHECKPOINT_BYTES
            if is_grown and self._watch.state() == "sound" and self._change_mark(flush=True):
                self._database.writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except FileNotFoundError:
            return
        except (sqlite3.Error, OSError) as error:
            _calmly(self._on_error, explain(error, self._database.path))


def _run(connection: sqlite3.Connection, job: _Job) -> tuple[Any, Exception | None]:
    """Run the job inside its savepoint; raise only if the transaction itself has ended."""
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


def _calmly(tell: Callable[[StoreError], None], problem: StoreError) -> None:
    """Report the problem; an exception raised by `tell` is only logged, so the writer thread continues."""
    try:
        tell(problem)
    except Exception:
        _LOG.exception("could not report: %s", problem)
