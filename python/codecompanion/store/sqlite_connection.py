"""Opens the store's SQLite connections, keeps its files private, and translates SQLite and OS errors.

One connection writes (owned by `writer_thread.Writer`), one reads; both use the same WAL database, so reads never wait
for writes. A store in memory has a single connection under one lock. Every sqlite3 and OS error leaves the store as a
`StoreError` with a one-sentence message for the user (`explain`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from codecompanion.errors import StoreCorrupt, StoreError, StoreUnavailable

FILE_NAME = "sessions.db"
SEE_RESTORE = "see :CodeCompanionRestore"
RESTORE = ":CodeCompanionRestore restores chats from their checkpoints"
BUSY_TIMEOUT_MS = 5_000

_PRIMARY_CODE = 0xFF  # extended result codes have the primary code in their low byte
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_UNWRITABLE = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space and try again",
    sqlite3.SQLITE_IOERR: "the disk reported an I/O error; check free space, quota and the disk's health",
    sqlite3.SQLITE_READONLY: "the file is read-only; make it and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; check that the folder exists and is writable",
    sqlite3.SQLITE_PERM: "permission denied; make the file and its folder writable",
    sqlite3.SQLITE_BUSY: "another process keeps the file locked; close other Neovims using it and try again",
    sqlite3.SQLITE_LOCKED: "another process keeps the file locked; close other Neovims using it and try again",
}
_OS_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space and try again",
    errno.EDQUOT: "the disk quota is used up; free some space and try again",
    errno.EROFS: "the file system is read-only; set another data folder or make it writable",
    errno.EACCES: "permission denied; make the folder writable",
    errno.EPERM: "permission denied; make the folder writable",
}


def is_damage(error: BaseException) -> bool:
    """Return whether the error means that the file itself is damaged, rather than not writable."""
    if isinstance(error, UnicodeDecodeError):  # SQLite's own message quotes a damaged schema
        return True
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    # A full-text index with damaged settings fails with the generic error code.
    return primary_code(error) in _DAMAGED or "invalid fts5 file format" in str(error)


def primary_code(error: sqlite3.Error) -> int:
    """Return the primary result code of the error, or 0 if it comes from the Python module rather than SQLite."""
    return int(getattr(error, "sqlite_errorcode", 0)) & _PRIMARY_CODE


def explain(error: Exception, path: Path | None) -> StoreError:
    """Return the error as a `StoreError` that gives the problem, the remedy, then the path."""
    if isinstance(error, StoreError):
        return error
    place = str(path) if path else "the store in memory"
    if is_damage(error):
        return StoreCorrupt(
            f"The chat history is damaged; :CodeCompanion restart repairs it ({place}: {error}). {RESTORE}"
        )
    if isinstance(error, sqlite3.Error):
        advice = _UNWRITABLE.get(primary_code(error))
        if advice:
            return StoreUnavailable(f"{advice} (cannot use {place}: {error})")
    if isinstance(error, OSError):
        advice = _OS_ADVICE.get(error.errno or 0, error.strerror or str(error))
        return StoreUnavailable(f"{advice} (cannot use {error.filename or place})")
    return StoreError(f"{place}: {type(error).__name__}: {error}")


@contextlib.contextmanager
def translate_errors(path: Path | None) -> Iterator[None]:
    """Convert sqlite3 and OS errors raised in the block to `StoreError`."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise explain(error, path) from error


def make_private_folder(folder: Path) -> None:
    """Create the folder with mode 0700. An existing one keeps its mode: others may share it.

    Its files still get mode 0600; `:checkhealth` reports a folder in which others can replace them.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def create_private_file(path: Path) -> None:
    """Create the file with mode 0600, or restrict an existing one; SQLite gives -wal and -shm the same mode.

    An existing file is never opened here: closing it would drop the POSIX locks SQLite holds on it in this process.
    """
    if not path.exists():
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    if path.stat().st_mode & 0o077:
        with contextlib.suppress(PermissionError):
            path.chmod(0o600)


def connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """Return a connection in autocommit mode, usable from any thread if the caller serialises access.

    `path` None opens a database in memory.
    """
    name = ":memory:" if path is None else str(path)
    connection = sqlite3.connect(name, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False)
    try:
        connection.text_factory = _text  # a flipped bit must not hide a whole list; the row's checksum detects it
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "replace")


class Database:
    """The two connections of an open store and the locks that serialise their use."""

    def __init__(self, path: Path | None, writer: sqlite3.Connection) -> None:
        """Take over the migrated write connection and open a read connection."""
        self.path = path
        self.writer = writer
        self.write_lock = threading.Lock()
        if path is None:
            self._reader, self._read_lock = writer, self.write_lock
        else:
            self._reader, self._read_lock = connect(path, read_only=True), threading.Lock()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the read connection to the block; errors are raised as `StoreError`."""
        with self._read_lock, translate_errors(self.path):
            yield self._reader

    def exchange(self, *, fold_in: bool = True) -> None:
        """Switch to the file now at the path, then close the previous one. The caller holds the write lock.

        `fold_in`: merge the log into the previous file first; False if the file's content is not ours.
        """
        writer = connect(self.path)
        try:
            writer.execute("PRAGMA journal_mode = WAL")
            reader = connect(self.path, read_only=True)
        except BaseException:
            writer.close()
            raise
        if fold_in:
            self.fold_in()
        with self._read_lock:
            lost = self._reader, self.writer
            self._reader, self.writer = reader, writer
        for connection in lost:
            connection.close()

    def fold_in(self) -> None:
        """Merge the log into the file; SQLite does not do this itself if the file was renamed."""
        with contextlib.suppress(sqlite3.Error):
            self.writer.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close both connections; the last process to close the file merges the WAL into it."""
        if self.writer is self._reader:
            with self._read_lock:
                self._reader.close()
            return
        with self.write_lock:
            self.close_unlocked()

    def close_unlocked(self) -> None:
        """Close both connections; the caller holds the write lock."""
        with self._read_lock:
            self._reader.close()
        self.writer.close()


def roll_back(connection: sqlite3.Connection) -> None:
    """End a failed transaction, unless SQLite has already done so."""
    with contextlib.suppress(sqlite3.Error):  # it fails only when there is nothing left to roll back
        if connection.in_transaction:
            connection.execute("ROLLBACK")
