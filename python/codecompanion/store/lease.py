"""Manages the leases of chats: one host writes a chat, all others may read it.

Each open store holds its own lock file for as long as its process lives; a lease row names the owner's file. The lock
is SQLite's own file lock on an empty database, which the operating system releases when the process ends: the chats of
a killed owner become free at once, and a laptop that was asleep keeps its chats. This needs no heartbeat, no expiry to
tune, and no process id, which can be reused or mean something else in another container. `event_rows.append_events`
checks the lease inside the transaction, so a host that lost its chat cannot write to it.

The rows are lost with the database. So each owner also lists its chats in a file beside its lock: they still belong to
the owner in a new database that was created without it (`Owner.foreign_claim`).
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
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.store.durable_files import write_whole
from codecompanion.store.sqlite_connection import create_private_file, primary_code

FOLDER = "owners"
_CLAIMS = ".chats"
REBUILDING = "rebuilding.lock"
"""Lock file held by the one host that restores chats from their checkpoints."""
LEFTOVER_AGE_S = 3_600.0  # seconds; an unlocked lock file this old belongs to a dead process


class Lease(msgspec.Struct, frozen=True):
    """A chat owned by a host: process id and machine are only for display; `owner` decides who has it."""

    chat_id: str
    owner: str
    pid: int
    host: str
    since: float


class Claims(msgspec.Struct, frozen=True):
    """The list beside a host's lock: its identity and its chats."""

    pid: int
    host: str
    since: dict[str, float] = {}


class FileLock:
    """An exclusive lock on a file, kept until `release` or the end of the process."""

    def __init__(self, path: Path, timeout_s: float = 10.0) -> None:
        """Take the lock; raises `sqlite3.OperationalError` if it does not become free within `timeout_s`."""
        self.path = path
        create_private_file(path)
        self._connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA journal_mode = OFF")  # it is never written
            self._connection.execute("BEGIN EXCLUSIVE")
        except BaseException:
            self._connection.close()
            raise

    def release(self) -> None:
        """Release the lock; the file is kept."""
        self._connection.close()


def is_locked(path: Path) -> bool:
    """Return whether a living process holds the lock; takes a shared lock, so that checks do not block each other."""
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
    """This host as an owner of chats; `folder` is None for a store in memory, which only this host can see."""

    def __init__(self, folder: Path | None) -> None:
        """Create and lock this host's own file."""
        self.id = uuid.uuid4().hex
        self._folder = folder
        self._claims = Claims(os.getpid(), platform.node() or "this machine")
        self._lock: FileLock | None = None
        if folder is not None:
            folder.mkdir(mode=0o700, exist_ok=True)
            self._lock = FileLock(_lock_file(folder, self.id))

    def lock_again(self) -> None:
        """Lock our file again after it was deleted: otherwise other hosts would consider us dead."""
        if self._folder is None or self._lock is None or self._lock.path.exists():
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        gone, self._lock = self._lock, FileLock(self._lock.path)
        gone.release()
        self._list_claims(self._claims.since)

    def is_alive(self, owner: str) -> bool:
        """Return whether the host with this owner id is still running."""
        if owner == self.id:
            return True
        return self._folder is not None and is_locked(_lock_file(self._folder, owner))

    def claim(self, chat_id: str, now: float) -> Lease:
        """List the chat as ours, and return its lease."""
        if chat_id not in self._claims.since:
            self._list_claims({**self._claims.since, chat_id: now})
        return Lease(chat_id, self.id, self._claims.pid, self._claims.host, self._claims.since[chat_id])

    def unclaim(self, chat_id: str) -> None:
        """Remove the chat from our list."""
        if chat_id in self._claims.since:
            self._list_claims({chat: since for chat, since in self._claims.since.items() if chat != chat_id})

    def _list_claims(self, since: dict[str, float]) -> None:
        claims = msgspec.structs.replace(self._claims, since=since)
        if self._folder is not None:
            # not flushed: after a power cut no process owns a chat
            write_whole(self._folder / f"{self.id}{_CLAIMS}", msgspec.json.encode(claims), flush=False)
        self._claims = claims

    def foreign_claim(self, chat_id: str) -> Lease | None:
        """Return another living host's claim on the chat, or None."""
        for file in self._folder.glob(f"*{_CLAIMS}") if self._folder is not None else ():
            if file.stem == self.id:
                continue
            try:
                claims = typed.read_json(file.read_bytes(), type=Claims)
            except (OSError, *NOT_READABLE):
                continue
            since = claims.since.get(chat_id)
            if since is not None and self.is_alive(file.stem):
                return Lease(chat_id, file.stem, claims.pid, claims.host, since)
        return None

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
                    file.with_suffix(_CLAIMS).unlink(missing_ok=True)

    def close(self) -> None:
        """Stop being an owner, which frees all our leases."""
        if self._lock is not None:
            self._lock.release()
            for file in (self._lock.path, self._lock.path.with_suffix(_CLAIMS)):
                with contextlib.suppress(OSError):
                    file.unlink()


def foreign_lease(connection: sqlite3.Connection, owner: Owner, chat_id: str) -> Lease | None:
    """Return the lease of the chat if another living host holds it, else None."""
    row = connection.execute(
        "SELECT chat_id, owner, pid, host, since FROM leases WHERE chat_id = ?", (chat_id,)
    ).fetchone()
    if row is not None and row[1] == owner.id:
        return None
    if row is not None and owner.is_alive(row[1]):
        return Lease(*row)
    return owner.foreign_claim(chat_id)


def refuse_foreign(connection: sqlite3.Connection, owner: Owner, chat_id: str) -> None:
    """Raise `LeaseHeld` if another living host holds the chat."""
    held = foreign_lease(connection, owner, chat_id)
    if held is not None:
        raise LeaseHeld(
            f"this chat is open in another Neovim (process {held.pid} on {held.host}); "
            "close it there to continue here, or only read it"
        )


def acquire(connection: sqlite3.Connection, owner: Owner, chat_id: str, now: float) -> Lease:
    """Take the lease of the chat inside the running transaction; a dead owner's lease is taken over.

    Raises:
        LeaseHeld: another living host holds it; the message names its process and machine.
    """
    refuse_foreign(connection, owner, chat_id)
    lease = owner.claim(chat_id, now)
    connection.execute(
        "INSERT OR REPLACE INTO leases(chat_id, owner, pid, host, since) VALUES (?, ?, ?, ?, ?)",
        (lease.chat_id, lease.owner, lease.pid, lease.host, lease.since),
    )
    return lease


def release(connection: sqlite3.Connection, owner: Owner, chat_id: str) -> None:
    """Release the chat; a lease of another host is kept."""
    connection.execute("DELETE FROM leases WHERE chat_id = ? AND owner = ?", (chat_id, owner.id))
    owner.unclaim(chat_id)


def release_all(connection: sqlite3.Connection, owner: Owner) -> None:
    """Release all chats of this host when it ends."""
    connection.execute("DELETE FROM leases WHERE owner = ?", (owner.id,))
