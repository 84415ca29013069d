"""A database file that was deleted, emptied or replaced while it was open: noticed before the next use of it.

SQLite goes on writing to a deleted file, and everything written would end with the process. What the open connections
still hold is copied into a new file; of an emptied one that is seldom all of it. Then the open chats are written again
(`rebuild`), and the others come back from their checkpoints (`session.lost_history`).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from codecompanion.errors import StoreError
from codecompanion.store.db import Database, connect, create_private_file, make_private_folder
from codecompanion.store.durable_files import flush_folder
from codecompanion.store.lease import FileLock
from codecompanion.store.migrations import migrate

State = Literal["sound", "deleted", "emptied", "replaced"]
R = TypeVar("R")


class Renewed(msgspec.Struct, frozen=True):
    """What had become of the file, and whether all of it is in the one that is used now."""

    state: State
    is_whole: bool


class FileWatch:
    """Remembers which file the database has open."""

    def __init__(self, database: Database) -> None:
        """`database` is open."""
        self._database = database
        self._known = _identity(database.path)

    def state(self) -> State:
        """Return what has become of the file; a few microseconds."""
        path = self._database.path
        if path is None or self._known is None:
            return "sound"
        try:
            found = path.stat()
        except FileNotFoundError:
            return "deleted"
        except OSError:  # said by whoever writes
            return "sound"
        if (found.st_dev, found.st_ino) != self._known:
            return "replaced"
        return "emptied" if found.st_size == 0 else "sound"

    def renew(self, look_back: Callable[[sqlite3.Connection], R]) -> tuple[Renewed, R]:
        """Put a good file in place and use it. The caller holds the write lock.

        `look_back` reads what it wants to keep of the lost file, as far as that can be read.

        Raises:
            sqlite3.Error, OSError, StoreError: no file can be made there; the open one is still used.
        """
        path = self._database.path
        if path is None:
            raise StoreError("a store in memory has no file to lose")
        make_private_folder(path.parent)
        turn = FileLock(path.parent / "opening.lock")  # another Neovim may be doing the same
        try:
            state, saved = self.state(), False
            remains = look_back(self._database.writer)
            if state in ("deleted", "emptied"):
                fresh = path.with_name(path.name + ".renewed")
                saved = self._make(fresh, path)
                self._database.exchange(lambda: _put(fresh, path))
            else:
                self._database.exchange(lambda: None)
            self._known = _identity(path)
        finally:
            turn.release()
        return Renewed(state, is_whole=saved or state == "sound"), remains

    def _make(self, fresh: Path, path: Path) -> bool:
        """Make the new file; return whether all of the old one is in it."""
        _remove(fresh)
        create_private_file(fresh)
        source = self._database.writer
        with contextlib.closing(connect(fresh)) as target:
            if saved := _is_whole(source):
                source.backup(target)
            else:
                migrate(target, str(path))
            target.execute("PRAGMA journal_mode = DELETE")  # all of it in the one file that is renamed
        return saved


def _is_whole(source: sqlite3.Connection) -> bool:
    try:
        source.execute("SELECT count(*) FROM chats").fetchone()
        return bool(source.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.Error:
        return False


def _put(fresh: Path, path: Path) -> None:
    _remove(path)
    fresh.replace(path)
    flush_folder(path.parent)


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _identity(path: Path | None) -> tuple[int, int] | None:
    if path is None or os.name != "posix":
        return None
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None
