"""Detects a database file that was deleted, emptied or replaced while open, before it is used again.

SQLite keeps writing to a deleted file, and everything written would be lost when the process ends. The content that the
open connections still have is therefore copied into a new file; for an emptied file that is rarely all of it. Then the
open chats are written again (`rebuild`), and the others are restored from their checkpoints
(`session.storage.lost_history`).

A file that another program put there is kept: it is used once it has stopped changing and proves valid; until then, or
if it never does, the open file stays in use. A file with content is never overwritten.

A file copied over the open one (`cp`, the same inode) is detected by its mark (`marks`). It becomes a separate file,
without our log; if it cannot be used, it is kept under another name, because the open file is gone.
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
"""Number of seconds without a change after which a file counts as completely copied."""


class Renewed(msgspec.Struct, frozen=True):
    """The state in which the lost file was found, and whether the new file has all of its content."""

    state: State
    is_whole: bool


class _Stamp(msgspec.Struct, frozen=True):
    """A snapshot of a file's metadata, compared with a later snapshot to detect changes."""

    device: int
    inode: int
    size: int
    changed_ns: int


class FileWatch:
    """Detects whether the path still refers to the file that the database has open."""

    def __init__(self, database: Database) -> None:
        """Watch the file of `database`, which is open."""
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
        """Return the current state of the file, in a few microseconds."""
        path = self._database.path
        if path is None or self._known is None:
            return "sound"
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return "deleted"
        except OSError:  # reported by the writer
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
        """Move a valid file into place and use it.

        Return None if a file may still be arriving, so that the caller tries again.

        `look_back` reads the content of the lost file that must be kept, as far as it is readable. The caller holds the
        write lock.

        Raises:
            sqlite3.Error, OSError, StoreError: no file can be created there; the open one stays in use.
        """
        path = self._database.path
        if path is None:
            raise StoreError("an in-memory store has no file")
        make_private_folder(path.parent)
        turn = FileLock(path.parent / "opening.lock")  # another Neovim may be doing this as well
        try:
            place = path.resolve()
            state = told = self.state()
            if state in ("emptied", "overwritten"):  # the open file is gone, so all its users wait
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
        """Return how to treat the file that replaced ours.

        A file without any chats was created by a Neovim that found no file: ours is restored, and that Neovim switches
        to it.
        """
        if not found.size:
            return "emptied"
        with contextlib.suppress(sqlite3.Error), contextlib.closing(connect(place, read_only=True)) as theirs:
            if theirs.execute("SELECT 1 FROM chats").fetchone() is None and _is_whole(self._database.writer):
                return "deleted"
        return "replaced"

    def _separate(self, place: Path) -> State:
        """Separate a file that was copied over ours; return the state of our file."""
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
            from codecompanion.store.damage.salvage import keep_damaged  # not needed at startup

            keep_damaged(place, time.time(), "an unusable file replaced it while it was open")
            return "deleted"
        return "replaced"

    def close_aside(self) -> None:
        """Close the database while the file at its path is renamed, so that SQLite leaves that file unchanged."""
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
        """Return whether the file has stopped changing or our file is too damaged to wait.

        A rejected file must change first.
        """
        now = time.monotonic()
        if found != self._seen[0]:
            self._seen = found, now if _is_whole(self._database.writer) else -math.inf
        return found != self._refused and now - self._seen[1] >= SETTLE_S

    def _examine(self, path: Path, found: _Stamp | None) -> None:
        """Check and migrate another program's file; if it cannot be used, remember it and raise an error."""
        try:
            self._check(path)
        except (sqlite3.Error, StoreError) as error:
            if isinstance(error, sqlite3.Error) and primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            self._refused = found
            raise StoreError(
                f"Chat history replaced by an unusable file while open. Delete {path} or restore a valid file; "
                f"until then, new messages are kept only in this Neovim ({error})"
            ) from error

    def _check(self, path: Path) -> None:
        """Check and migrate a file; raises `sqlite3.Error` or `StoreError` if it cannot be used."""
        with contextlib.closing(connect(path)) as theirs:
            lines = [str(row[0]) for row in theirs.execute("PRAGMA quick_check(1)")]
            if lines != ["ok"]:
                raise StoreError(lines[0])
            migrate(theirs, str(path))
            theirs.execute("SELECT count(*) FROM chats").fetchone()

    def _put(self, place: Path, found: _Stamp | None, *, may_have_content: bool) -> bool | None:
        """Put a new file at a free or empty path.

        Return whether it is complete, or None if another file appeared there.

        `may_have_content`: the existing file is a database without a chat.
        """
        fresh = place.with_name(place.name + ".renewed")
        for suffix in ("", "-wal", "-shm"):
            marks.beside(fresh, suffix).unlink(missing_ok=True)
        saved = self._make(fresh, place)
        if _look(place) != found or (found is not None and found.size and not may_have_content):
            fresh.unlink()
            return None
        self._set_aside(place)
        for suffix in self._beside:  # their database is gone, and SQLite would add them to the new file
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
        """Remove the write-ahead log of the lost file, which SQLite would otherwise add to the new file.

        The open connections keep using the log; a log that belongs to the other file stays.
        """
        for suffix, known in self._beside.items():
            file = marks.beside(place, suffix)
            if known is not None and marks.identity(file) == known:
                file.unlink(missing_ok=True)

    def _make(self, fresh: Path, path: Path) -> bool:
        """Create the new file; return whether it contains everything from the old one."""
        create_private_file(fresh)
        source = self._database.writer
        with contextlib.closing(connect(fresh)) as target:
            if saved := _is_whole(source):
                source.backup(target)
            else:
                migrate(target, str(path))
            target.execute("PRAGMA journal_mode = DELETE")  # keeps everything in the one file that is renamed
        return saved


def put_back(path: Path) -> None:
    """Rename a file back if its host was killed in `close_aside`; the caller holds the opening lock."""
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
    """Move the file to a free path; return False, without moving it, if a file has appeared there."""
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
    """Return the metadata of the file, or None when it does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return _Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
