"""Who owns a chat: one host writes it, any other may read it.

Each open store holds a lock file of its own for as long as its process lives; a lease row names the owner's file.
The lock is SQLite's own file lock on an empty database, which the operating system takes away with the process: a
killed owner frees its chats at once, with no heartbeat, no expiry to tune, no process id that can be reused or that
means something else in another container, and a laptop that slept keeps its chats. `sessions.append_events` looks at
the lease inside the transaction, so a host that lost its chat cannot write to it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sqlite3
import uuid
from pathlib import Path

import msgspec

from codecompanion.errors import LeaseHeld
from codecompanion.store.db import create_private_file, primary_code

FOLDER = "owners"
LEFTOVER_AGE_S = 3_600.0  # a lock file this old that nobody locks belongs to a process that died


class Lease(msgspec.Struct, frozen=True):
    """A chat held by a host: process id and machine are for the user to read, `owner` decides."""

    chat_id: str
    owner: str
    pid: int
    host: str
    since: float


class FileLock:
    """An exclusive lock on a file, held until `release` or the death of the process."""

    def __init__(self, path: Path, timeout_s: float = 10.0) -> None:
        """Take the lock; raises `sqlite3.OperationalError` when it is not free within the time."""
        self.path = path
        create_private_file(path)
        self._connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA journal_mode = OFF")  # nothing is ever written to it
            self._connection.execute("BEGIN EXCLUSIVE")
        except BaseException:
            self._connection.close()
            raise

    def release(self) -> None:
        """Give the lock back; the file stays."""
        self._connection.close()


def is_locked(path: Path) -> bool:
    """Return whether a living process holds the lock; takes only a shared lock, so two questions never collide."""
    if not path.exists():
        return False
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=0)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        return primary_code(error) == sqlite3.SQLITE_BUSY
    finally:
        connection.close()
    return False


def _lock_file(folder: Path, owner: str) -> Path:
    return folder / f"{owner}.lock"


class Owner:
    """This host as an owner of chats; `folder` None for a store in memory, which nobody else can see."""

    def __init__(self, folder: Path | None) -> None:
        """Lock a fresh file of our own."""
        self.id = uuid.uuid4().hex
        self._folder = folder
        self._lock: FileLock | None = None
        if folder is not None:
            folder.mkdir(mode=0o700, exist_ok=True)
            self._lock = FileLock(_lock_file(folder, self.id))

    def lock_again(self) -> None:
        """Lock our file anew when it was deleted: others would take us for dead."""
        if self._folder is None or self._lock is None or self._lock.path.exists():
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        gone, self._lock = self._lock, FileLock(self._lock.path)
        gone.release()

    def is_alive(self, owner: str) -> bool:
        """Return whether the host behind an owner id still runs."""
        if owner == self.id:
            return True
        return self._folder is not None and is_locked(_lock_file(self._folder, owner))

    def others_alive(self) -> bool:
        """Return whether another host has a store open in this folder."""
        if self._folder is None:
            return False
        return any(self.is_alive(file.stem) for file in self._folder.glob("*.lock") if file.stem != self.id)

    def remove_leftovers(self, now: float) -> None:
        """Delete the lock files of hosts that were killed."""
        if self._folder is None:
            return
        for file in self._folder.glob("*.lock"):
            with contextlib.suppress(OSError):
                if now - file.stat().st_mtime > LEFTOVER_AGE_S and not self.is_alive(file.stem):
                    file.unlink()

    def close(self) -> None:
        """Stop being an owner: every lease of ours is free from now on."""
        if self._lock is not None:
            self._lock.release()
            with contextlib.suppress(OSError):
                self._lock.path.unlink()


def foreign_lease(connection: sqlite3.Connection, owner: Owner, chat_id: str) -> Lease | None:
    """Return the lease of the chat when another living host holds it."""
    row = connection.execute(
        "SELECT chat_id, owner, pid, host, since FROM leases WHERE chat_id = ?", (chat_id,)
    ).fetchone()
    if row is None or row[1] == owner.id or not owner.is_alive(row[1]):
        return None
    return Lease(*row)


def refuse_foreign(connection: sqlite3.Connection, owner: Owner, chat_id: str) -> None:
    """Raise `LeaseHeld` when another living host holds the chat."""
    held = foreign_lease(connection, owner, chat_id)
    if held is not None:
        raise LeaseHeld(
            f"this chat is open in another Neovim (host process {held.pid} on {held.host}); "
            "close it there to go on here, or only read it"
        )


def acquire(connection: sqlite3.Connection, owner: Owner, chat_id: str, now: float) -> Lease:
    """Make the chat ours inside the running transaction; a dead owner's lease is taken over.

    Raises:
        LeaseHeld: another living host holds it; the text names its process and machine.
    """
    refuse_foreign(connection, owner, chat_id)
    lease = Lease(chat_id, owner.id, os.getpid(), platform.node() or "this machine", now)
    connection.execute(
        "INSERT OR REPLACE INTO leases(chat_id, owner, pid, host, since) VALUES (?, ?, ?, ?, ?)",
        (lease.chat_id, lease.owner, lease.pid, lease.host, lease.since),
    )
    return lease


def release(connection: sqlite3.Connection, owner: Owner, chat_id: str) -> None:
    """Give the chat back; somebody else's lease is left alone."""
    connection.execute("DELETE FROM leases WHERE chat_id = ? AND owner = ?", (chat_id, owner.id))
