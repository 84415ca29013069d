"""Faults of the store while a chat uses it, and their repair: the disk faults of the table by name."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codecompanion.store.sqlite_connection import translate_errors
from codecompanion.store.store import Store

PLENTY = 1_000_000


@dataclass(frozen=True)
class Disk:
    """Functions that damage and repair the store.

    `in_reply`: damage it after the second message has reached the server, otherwise before.
    """

    damage: Callable[[Store], None]
    mend: Callable[[Store], None]
    in_reply: bool = False


def _pragma(text: str) -> Callable[[Store], None]:
    """Return a function that sets a pragma of the writing connection."""
    return lambda store: _run(store, text)


def _run(store: Store, statement: str) -> Any:
    """Execute a statement between the transactions of the writer."""
    with store._database.write_lock:
        return store._database.writer.execute(statement).fetchone()


def _fill(store: Store) -> None:
    """Prevent the file from growing."""
    (pages,) = _run(store, "PRAGMA page_count")
    _run(store, f"PRAGMA max_page_count = {pages}")


_locks: dict[int, sqlite3.Connection] = {}


def _lock(store: Store) -> None:
    """Begin a transaction on a separate connection, as another process would, and leave it open."""
    _run(store, "PRAGMA busy_timeout = 0")
    other = sqlite3.connect(_path(store), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    _locks[id(store)] = other


def _unlock(store: Store) -> None:
    other = _locks.pop(id(store))
    other.execute("ROLLBACK")
    other.close()
    _run(store, "PRAGMA busy_timeout = 5000")


def _delete(store: Store) -> None:
    path = _path(store)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _delete_folder(store: Store) -> None:
    shutil.rmtree(_path(store).parent)


def _refuse_blobs(store: Store) -> None:
    """Accept rows, but fail to write blobs."""

    def put(content: bytes) -> str:
        with translate_errors(_path(store)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "blobs")

    store._blobs.put = put  # type: ignore[method-assign]


def _take_blobs(store: Store) -> None:
    del store._blobs.put


def _path(store: Store) -> Path:
    assert store.path is not None
    return store.path


def _nothing(store: Store) -> None:
    return None


_READ_ONLY, _WRITABLE = _pragma("PRAGMA query_only = ON"), _pragma("PRAGMA query_only = OFF")
_ROOM = _pragma(f"PRAGMA max_page_count = {PLENTY}")
DISKS = {
    "read-only": Disk(_READ_ONLY, _WRITABLE),
    "read-only in the reply": Disk(_READ_ONLY, _WRITABLE, in_reply=True),
    "full": Disk(_fill, _ROOM),
    "full in the reply": Disk(_fill, _ROOM, in_reply=True),
    "locked": Disk(_lock, _unlock),
    "locked in the reply": Disk(_lock, _unlock, in_reply=True),
    "deleted": Disk(_delete, _nothing),
    "deleted in the reply": Disk(_delete, _nothing, in_reply=True),
    "folder deleted": Disk(_delete_folder, _nothing),
    "no place for large results": Disk(_refuse_blobs, _take_blobs),
}
