"""Identifies the database file that a write-ahead log belongs to, by a mark in the file and a list of marks beside it.

SQLite merges any log beside a file into that file, and keeps using its own log after another file was copied over the
open one. Either way, two good files become one damaged file. So before a process merges its log, it writes a new random
mark (`application_id`, in the first page), which it has listed beforehand: a file whose mark is not in the list was put
there by another program, while it was open (`lost_file`) or closed (`set_aside_foreign_log`).

The list also identifies the log it was written for, so a log that was copied with its database is left alone. Marks are
read bypassing the log and without locks (`immutable`): opening and closing a file in this process would drop SQLite's
locks on it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.store.durable_files import flush_folder, write_whole
from codecompanion.store.sqlite_connection import create_private_file, is_damage

Identity = tuple[int, int]
UNMARKED = 0
SETTLE_MAX_S = 10.0
LOOKS = 5
_MAX_LIST_BYTES = 1_000_000
_WAL_HEADER, _FRAME_HEADER = 32, 24
_PAGE_SIZES = frozenset(2**power for power in range(9, 17))
BESIDE = ("-wal", "-shm")
REBUILT = ".rebuilt"
"""Suffix of a completely rebuilt database until it replaces the damaged one (`salvage`)."""


class Belonging(msgspec.Struct, frozen=True):
    """The marks that the file may have, newest last, and the identities of the file and of SQLite's files beside it."""

    marks: tuple[int, ...]
    file: Identity | None = None
    beside: dict[str, Identity | None] = {}


def identity(path: Path | None) -> Identity | None:
    """Return the identity of the file, or None if it does not exist or the file system has no inode numbers."""
    if path is None or os.name != "posix":
        return None
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def beside(path: Path, suffix: str) -> Path:
    """Return the path of a file beside the database."""
    return path.with_name(path.name + suffix)


def mark_of_file(path: Path) -> int | None:
    """Return the mark of the file without its log, or None if it is not a database.

    Raises:
        sqlite3.Error: the file cannot be read now.
    """
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("PRAGMA writable_schema = ON")  # the file may be shorter than its first page says
            return mark_of(connection)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if is_damage(error):
            return None
        raise


def mark_of(connection: sqlite3.Connection) -> int:
    """Return the mark that a connection sees, including the log."""
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def read_belonging(path: Path) -> Belonging | None:
    """Return the list of marks beside the database, or None if there is none."""
    with contextlib.suppress(OSError, *NOT_READABLE), beside(path, "-marks").open("rb") as file:
        return typed.read_json(file.read(_MAX_LIST_BYTES), type=Belonging)
    return None


def is_ours(path: Path) -> bool:
    """Return whether the file has a listed mark, or True if that is unknown."""
    for _ in range(LOOKS):
        try:
            mark = mark_of_file(path)
            listed = read_belonging(path)  # read after the file: a mark is listed before the file has it
            if listed is None or mark in listed.marks:
                return True
            if mark_of_file(path) == mark:  # otherwise the log was merged in between, and the list is newer
                return False
        except sqlite3.Error:
            break
    return True  # the next check decides


def adopt(path: Path, connection: sqlite3.Connection) -> None:
    """List the open file and the log beside it; give the file a mark if it has none.

    If the file cannot be listed, the list is removed, because an old list would describe another file.
    """
    try:
        with _alone(connection):
            _list(path, connection)
        if mark_of(connection) == UNMARKED and change_mark(path, connection):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            with _alone(connection):
                _list(path, connection)
    except (OSError, sqlite3.Error):
        with contextlib.suppress(OSError):
            beside(path, "-marks").unlink()


def change_mark(path: Path, connection: sqlite3.Connection, *, flush: bool = True) -> bool:
    """Give the file a new mark in a separate transaction, before the log is merged.

    Return False, without a change, if another file is at the path: nothing may be merged into that file. Without
    `flush`, a power cut may leave the older list; use that only if the log is empty once the file has the mark.

    Raises:
        OSError, sqlite3.Error: nothing was changed.
    """
    with _alone(connection):
        if not is_ours(path):
            return False
        new = 1 + secrets.randbelow(2**31 - 1)
        _list(path, connection, (new,), flush=flush)
        connection.execute(f"PRAGMA application_id = {new}")
    return True


@contextlib.contextmanager
def _alone(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock, which only one process can have, while the list is read and rewritten."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _list(path: Path, connection: sqlite3.Connection, new: tuple[int, ...] = (), *, flush: bool = False) -> None:
    """Write the list of marks, starting at the file's current mark and adding the log's mark and `new`."""
    listed, now = read_belonging(path), mark_of_file(path)
    known = listed.marks if listed is not None and (now is None or now in listed.marks) else ()
    if now is not None:
        known = known[known.index(now) :] if known else (now,)
    marks = tuple(dict.fromkeys((*known, mark_of(connection), *new)))
    found = Belonging(marks, identity(path), {suffix: identity(beside(path, suffix)) for suffix in BESIDE})
    if found != listed:
        write_whole(beside(path, "-marks"), msgspec.json.encode(found), flush=flush)


def set_aside_foreign_log(path: Path, settle_s: float) -> Path | None:
    """Remove a log beside a file it does not belong to; return where it is kept, or None if there is no such log.

    Call this before the database is opened, while no other process opens it. Other processes that use the log keep it
    open. If a file was copied over an older one, first wait until it has been unchanged for `settle_s` seconds.
    """
    listed = read_belonging(path)
    if listed is None:
        return None
    old = [suffix for suffix in BESIDE if _is_listed(path, suffix, listed)]
    if not old or not _is_foreign(path, listed):
        return None
    if identity(path) == listed.file and path.stat().st_size:
        is_settled(path, settle_s)
        give_own_inode(path)
    beside(path, "-shm").unlink(missing_ok=True)
    if "-wal" not in old:
        return None
    kept = beside(path, "-wal.old")
    beside(path, "-wal").replace(kept)
    return kept if kept.stat().st_size else None


def _is_listed(path: Path, suffix: str, listed: Belonging) -> bool:
    known = listed.beside.get(suffix)
    return known is not None and identity(beside(path, suffix)) == known


def _is_foreign(path: Path, listed: Belonging) -> bool:
    found = identity(path)
    if found is None or found != listed.file or not path.stat().st_size:
        return True
    try:
        is_damaged = mark_of_file(path) is None  # a damaged file is saved together with its log
    except sqlite3.Error:
        return False
    return not is_damaged and not is_ours(path)


def committed_frames(path: Path) -> int:
    """Return the number of committed pages in the write-ahead log, using only the frame headers; 0 = no log.

    SQLite stops reading at the first damaged frame, and does not report the frames after it. A frame belongs to the log
    if it has the salt of the log's header: frames of earlier logs have other salts ("WAL File Format").
    """
    salts, commits = list[bytes](), list[bool]()
    with contextlib.suppress(OSError), beside(path, "-wal").open("rb") as log:
        header = log.read(_WAL_HEADER)
        size = int.from_bytes(header[8:12], "big")
        size = size if size in _PAGE_SIZES else 4096
        while len(frame := log.read(_FRAME_HEADER)) == _FRAME_HEADER:
            salts.append(frame[8:16])
            commits.append(frame[4:8] != b"\0\0\0\0")
            if log.seek(size, os.SEEK_CUR) > _size(log.fileno()):
                break
    if not salts:
        return 0
    ours = header[16:24]
    if ours not in salts[:2]:
        if _is_header_sound(header):  # just restarted: the frames are from the previous log
            return 0
        ours = salts[0]
    return max((at for at, salt in enumerate(salts, 1) if salt == ours and commits[at - 1]), default=0)


def _is_header_sound(header: bytes) -> bool:
    """Return whether the header of a write-ahead log matches its checksum."""
    if len(header) < _WAL_HEADER:
        return False
    order: Literal["big", "little"] = "big" if header[3] & 1 else "little"
    words = [int.from_bytes(header[at : at + 4], order) for at in range(0, 24, 4)]
    one = other = 0
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + other) & 0xFFFFFFFF
        other = (other + second + one) & 0xFFFFFFFF
    return header[24:32] == one.to_bytes(4, "big") + other.to_bytes(4, "big")


def _size(descriptor: int) -> int:
    """Return the size of an open file."""
    return os.fstat(descriptor).st_size


def copy_unlocked(path: Path, target: Path) -> None:
    """Copy the database without its log into another file, page by page, ignoring all locks.

    Raises:
        sqlite3.DatabaseError: the file is not a database, or cannot be read.
    """
    uri = f"{path.as_uri()}?mode=ro&immutable=1"
    with (
        contextlib.closing(sqlite3.connect(uri, uri=True)) as source,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)


def is_settled(path: Path, settle_s: float) -> bool:
    """Wait until the file has not changed for `settle_s`; return False if it keeps changing or disappears."""
    end = time.monotonic() + SETTLE_MAX_S
    with contextlib.suppress(OSError):
        seen = path.stat()
        while time.monotonic() < end:
            time.sleep(settle_s)
            before, seen = seen, path.stat()
            if (before.st_size, before.st_mtime_ns, before.st_ino) == (seen.st_size, seen.st_mtime_ns, seen.st_ino):
                return True
    return False


def give_own_inode(path: Path) -> None:
    """Replace the file with an identical copy, so that processes that already opened it have a different file."""
    import shutil  # slow to import, rarely needed

    copy = beside(path, ".renewed")
    copy.unlink(missing_ok=True)
    create_private_file(copy)
    shutil.copyfile(path, copy)
    copy.replace(path)
    flush_folder(path.parent)
