"""A database file that was deleted, emptied or replaced while it was open: noticed before the next use of it.

SQLite goes on writing to a deleted file, and everything written would end with the process. What the open connections
still hold is copied into a new file; of an emptied one that is seldom all of it. Then the open chats are written again
(`rebuild`), and the others come back from their checkpoints (`session.storage.lost_history`).

A file that somebody put there is theirs: it is used once it has stopped changing and proves sound; until then, and when
it never does, the open one goes on. Nothing is ever put in the place of a file that has something in it.

A file that was copied over the open one (`cp`, the same inode) shows by its mark (`marks`). It becomes a file of its
own, without our log; one that cannot be used is kept under another name, because nothing is left to go on with.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from codecompanion.errors import StoreError
from codecompanion.store.damage import marks
from codecompanion.store.durable_files import flush_folder
from codecompanion.store.lease import FileLock
from codecompanion.store.log.migrations import migrate
from codecompanion.store.sqlite_connection import (
    Database,
    connect,
    create_private_file,
    make_private_folder,
    primary_code,
)

State = Literal["sound", "deleted", "emptied", "replaced", "overwritten"]
R = TypeVar("R")

_ASIDE = ".aside"
SETTLE_S = 1.0
"""A file that looks the same after so long is not being copied any more."""


class Renewed(msgspec.Struct, frozen=True):
    """What had become of the file, and whether all of it is in the one that is used now."""

    state: State
    is_whole: bool


class _Stamp(msgspec.Struct, frozen=True):
    """One look at a file; another one that is equal says that nobody has changed it."""

    device: int
    inode: int
    size: int
    changed_ns: int


class FileWatch:
    """Remembers which file the database has open."""

    def __init__(self, database: Database) -> None:
        """`database` is open."""
        self._database = database
        self._seen: tuple[_Stamp | None, float] = (None, 0.0)
        self._refused: _Stamp | None = None
        self._sound: tuple[int, int] | None = None
        self._remember()

    def _remember(self) -> None:
        path = self._database.path
        self._known = marks.identity(path)
        if path is None:
            return
        self._beside = {suffix: marks.identity(marks.beside(path, suffix)) for suffix in marks.BESIDE}
        marks.adopt(path.resolve(), self._database.writer)

    def state(self) -> State:
        """Return what has become of the file; a few microseconds."""
        path = self._database.path
        if path is None or self._known is None:
            return "sound"
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return "deleted"
        except OSError:  # said by whoever writes
            return "sound"
        if (found.st_dev, found.st_ino) != self._known:
            return "replaced"
        if found.st_size == 0:
            return "emptied"
        stamp = found.st_size, found.st_mtime_ns
        if stamp != self._sound:
            if not marks.is_ours(path.resolve()):
                return "overwritten"
            self._sound = stamp
        return "sound"

    def renew(self, look_back: Callable[[sqlite3.Connection], R]) -> tuple[Renewed, R] | None:
        """Put a good file in place and use it; None: somebody may be putting one there, ask again. Hold the write lock.

        `look_back` reads what it wants to keep of the lost file, as far as that can be read.

        Raises:
            sqlite3.Error, OSError, StoreError: no file can be had there; the open one is still used.
        """
        path = self._database.path
        if path is None:
            raise StoreError("a store in memory has no file to lose")
        make_private_folder(path.parent)
        turn = FileLock(path.parent / "opening.lock")  # another Neovim may be doing the same
        try:
            place = path.resolve()
            state = told = self.state()
            if state in ("emptied", "overwritten"):  # what is open is lost, so whoever wants to use it waits
                if not marks.is_settled(place, SETTLE_S) and self.state() == state:
                    return None
                state = told = self.state()
            is_checked = state == "overwritten"
            if is_checked:
                state = self._separate(place)
            saved: bool | None = state == "sound"
            found = _look(place)
            if state == "replaced" and not is_checked:
                self._set_aside(place)
                if found is None or not self._is_settled(found):
                    return None
                state = told = self._what_took_its_place(place, found)
            remains = look_back(self._database.writer)
            if state == "replaced" and not is_checked:
                self._examine(path, found)
            elif state not in ("sound", "replaced"):
                saved = self._put(place, found, may_have_content=state == "deleted")
                if saved is None:
                    return None
            if state != "sound":
                self._database.exchange(fold_in=not is_checked)
                self._remember()
        finally:
            turn.release()
        return Renewed("sound" if state == "sound" else told, is_whole=bool(saved)), remains

    def _what_took_its_place(self, place: Path, found: _Stamp) -> State:
        """Return what to take a file in the place of ours for.

        One without a chat was made by a Neovim that found none there: ours comes back, and that one joins it.
        """
        if not found.size:
            return "emptied"
        with contextlib.suppress(sqlite3.Error), contextlib.closing(connect(place, read_only=True)) as theirs:
            if theirs.execute("SELECT 1 FROM chats").fetchone() is None and _is_whole(self._database.writer):
                return "deleted"
        return "replaced"

    def _separate(self, place: Path) -> State:
        """Make a file that was copied over ours one of its own; return what has become of ours then."""
        with contextlib.suppress(sqlite3.DatabaseError):
            if marks.mark_of_file(place) == marks.mark_of(self._database.writer):  # changed through SQLite itself
                marks.adopt(place, self._database.writer)
                return "sound"
        theirs = marks.beside(place, ".theirs")
        try:
            for suffix in ("", *marks.BESIDE):
                marks.beside(theirs, suffix).unlink(missing_ok=True)
            create_private_file(theirs)
            marks.copy_unlocked(place, theirs)
            self._check(theirs)
            self._set_aside(place)
            theirs.replace(place)
        except (sqlite3.DatabaseError, StoreError) as error:
            theirs.unlink(missing_ok=True)
            if isinstance(error, sqlite3.OperationalError):
                raise
            from codecompanion.store.damage.salvage import keep_damaged  # not part of the start

            keep_damaged(place, time.time(), "another file was copied over the open one, and cannot be used")
            return "deleted"
        return "replaced"

    def close_aside(self) -> None:
        """Close the database while its file has another name: SQLite then leaves the file as it is."""
        path = self._database.path
        if path is None:
            return
        turn = FileLock(path.parent / "opening.lock")
        place = path.resolve()
        try:
            aside = marks.beside(place, _ASIDE)
            place.rename(aside)
            try:
                self._database.close_unlocked()
            finally:
                aside.rename(place)
        finally:
            turn.release()

    def _is_settled(self, found: _Stamp) -> bool:
        """Return whether the file has stopped changing, or cannot be waited for; a refused one has to change first."""
        now = time.monotonic()
        if found != self._seen[0]:
            self._seen = found, now if _is_whole(self._database.writer) else -math.inf
        return found != self._refused and now - self._seen[1] >= SETTLE_S

    def _examine(self, path: Path, found: _Stamp | None) -> None:
        """Bring somebody's file to our format; raises when it cannot be used."""
        try:
            self._check(path)
        except (sqlite3.Error, StoreError) as error:
            if isinstance(error, sqlite3.Error) and primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            self._refused = found
            raise StoreError(
                f"Chat history replaced while open by a file that cannot be used; until you delete {path} or put a "
                f"sound one there, only this Neovim keeps what is said ({error})"
            ) from error

    def _check(self, path: Path) -> None:
        """Bring a file to our format; raises `sqlite3.Error` or `StoreError` when it cannot be used."""
        with contextlib.closing(connect(path)) as theirs:
            lines = [str(row[0]) for row in theirs.execute("PRAGMA quick_check(1)")]
            if lines != ["ok"]:
                raise StoreError(lines[0])
            migrate(theirs, str(path))
            theirs.execute("SELECT count(*) FROM chats").fetchone()

    def _put(self, place: Path, found: _Stamp | None, *, may_have_content: bool) -> bool | None:
        """Put a new file where none or an empty one is; return whether it has everything, None: there is one now.

        `may_have_content`: it is a database without a chat.
        """
        fresh = place.with_name(place.name + ".renewed")
        for suffix in ("", "-wal", "-shm"):
            marks.beside(fresh, suffix).unlink(missing_ok=True)
        saved = self._make(fresh, place)
        if _look(place) != found or (found is not None and found.size and not may_have_content):
            fresh.unlink()
            return None
        self._set_aside(place)
        for suffix in self._beside:  # not ours, but of no file that is there: SQLite would add it to the new one
            with contextlib.suppress(FileNotFoundError):
                marks.beside(place, suffix).replace(marks.beside(place, f"{suffix}.old"))
        if found is None and not _link(fresh, place):
            fresh.unlink()
            return None
        if found is not None:
            fresh.replace(place)
        flush_folder(place.parent)
        return saved

    def _set_aside(self, place: Path) -> None:
        """Take away the write-ahead log of the lost file: SQLite would add it to the file that is there now.

        The open connections keep it; one that belongs to the other file is left alone.
        """
        for suffix, known in self._beside.items():
            file = marks.beside(place, suffix)
            if known is not None and marks.identity(file) == known:
                file.unlink(missing_ok=True)

    def _make(self, fresh: Path, path: Path) -> bool:
        """Make the new file; return whether all of the old one is in it."""
        create_private_file(fresh)
        source = self._database.writer
        with contextlib.closing(connect(fresh)) as target:
            if saved := _is_whole(source):
                source.backup(target)
            else:
                migrate(target, str(path))
            target.execute("PRAGMA journal_mode = DELETE")  # all of it in the one file that is renamed
        return saved


def put_back(path: Path) -> None:
    """Give a file its name back that a host was killed over (`close_aside`); the caller holds the turn to open it."""
    aside = marks.beside(path, _ASIDE)
    if aside.exists() and not path.exists():
        aside.rename(path)


def _is_whole(source: sqlite3.Connection) -> bool:
    try:
        source.execute("SELECT count(*) FROM chats").fetchone()
        return bool(source.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.Error:
        return False


def _link(fresh: Path, place: Path) -> bool:
    """Move the file to where none is; return False, and move nothing, when one has come there."""
    try:
        os.link(fresh, place)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if place.exists():
            return False
        fresh.replace(place)
    else:
        fresh.unlink()
    return True


def _look(path: Path) -> _Stamp | None:
    """Return what is there, None for nothing."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return _Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
