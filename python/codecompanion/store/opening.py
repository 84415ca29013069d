"""Opens the session store: creates private files, migrates and repairs them, and falls back to memory.

Processes that open the same file take turns, so only one of them migrates or repairs it.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from pathlib import Path

from codecompanion.errors import StoreCorrupt, StoreError, StoreUnavailable
from codecompanion.store import lease
from codecompanion.store.damage import lost_file, marks
from codecompanion.store.damage.marks import set_aside_foreign_log
from codecompanion.store.durable_files import remove_drafts
from codecompanion.store.files.blobs import FOLDER as BLOB_FOLDER
from codecompanion.store.files.blobs import Blobs
from codecompanion.store.lease import FileLock, Owner
from codecompanion.store.log.migrations import migrate, version_of
from codecompanion.store.sqlite_connection import (
    FILE_NAME,
    SEE_RESTORE,
    Database,
    connect,
    create_private_file,
    is_damage,
    make_private_folder,
    primary_code,
    translate_errors,
)
from codecompanion.store.store import Clock, Report, Store, suspicion_of

_LOG = logging.getLogger(__name__)
_OURS, _ENOUGH = frozenset({"chats", "events", "leases", "message_text"}), 2
"""The tables that every version has, and the number of them that proves that a file is ours.

A damaged file may have lost some, and another program's file may have a table with one of these names.
"""


def log_problem(problem: StoreError) -> None:
    """Log the problem as a warning; the default `report`."""
    _LOG.warning("%s", problem)


def open_store(data_dir: Path, clock: Clock = time.time, report: Report = log_problem) -> Store:
    """Open `sessions.db` in the folder; create, migrate or repair it if necessary.

    A damaged file is set aside and its readable content is saved into a new one; `report` receives one sentence about
    it.

    Raises:
        StoreUnavailable: the store is read-only, full, forbidden, locked, or from a newer version; continue with
            `open_memory_store` and tell the user.
        StoreCorrupt: the file is damaged and another Neovim has it open, so it cannot be repaired now.
    """
    path = data_dir / FILE_NAME
    with translate_errors(path):
        make_private_folder(data_dir)
        turn = FileLock(data_dir / "opening.lock")
        try:
            with contextlib.ExitStack() as opened:  # closed again unless everything succeeds
                owner = Owner(data_dir / lease.FOLDER)
                opened.callback(owner.close)
                writer, repaired = _open_or_repair(path, owner, clock())
                opened.callback(writer.close)
                owner.remove_leftovers(clock())
                for folder in (data_dir, data_dir / lease.FOLDER):
                    remove_drafts(folder)
                database = Database(path, writer)
                opened.callback(database.close)
                store = Store(database, owner, Blobs(data_dir / BLOB_FOLDER), clock, report)
                opened.pop_all()
        finally:
            turn.release()
    if repaired is not None:
        report(repaired)
    return store


def open_memory_store(report: Report = log_problem) -> Store:
    """Open a store that is lost when the process ends, for use when the disk cannot be used."""
    writer = connect(None)
    migrate(writer, "the store in memory")
    return Store(Database(None, writer), Owner(None), Blobs(None), time.time, report)


def _open_or_repair(path: Path, owner: Owner, now: float) -> tuple[sqlite3.Connection, StoreCorrupt | None]:
    lost_file.put_back(path.resolve())
    foreign = _set_foreign_aside(path, now)
    if foreign is not None:
        return _open_sound(path), foreign
    kept = None
    if path.with_name(path.stem + marks.REBUILT).exists():
        from codecompanion.store.damage.salvage import finish_swap  # not needed at startup

        kept = finish_swap(path, now)
    repaired = StoreCorrupt(f"Damaged chat history: now repaired; {SEE_RESTORE}") if kept else None
    if repaired is None and _was_emptied(path):
        repaired = StoreCorrupt(f"The chat history was deleted or emptied; {SEE_RESTORE}")
    old_log = set_aside_foreign_log(path.resolve(), lost_file.SETTLE_S)
    if old_log is not None:
        _LOG.warning("the write-ahead log beside %s belongs to another file; kept as %s", path, old_log)
    commits = marks.committed_frames(path.resolve()) if not owner.others_alive() else 0
    try:
        connection = _open_sound(path)
        lost = commits and _lost_frames(connection, commits)
        if lost:
            repaired = StoreCorrupt(f"The newest changes to the chat history are damaged: {lost} lost; {SEE_RESTORE}")
        return connection, repaired
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
        if owner.others_alive():
            raise StoreCorrupt(
                f"{path} is damaged; to repair it, close all other Neovims and open the chat again ({error})"
            ) from error
    from codecompanion.store.damage.salvage import repair  # not needed at startup

    repaired = repair(path, now)
    return _open_sound(path), repaired


def _set_foreign_aside(path: Path, now: float) -> StoreCorrupt | None:
    """Rename a folder or another program's database that occupies the path, and return a notice about it."""
    what = ""
    if path.is_dir():
        what = "a folder"
    elif path.exists() and not path.is_file():
        raise StoreUnavailable(f"{path} is a device or a pipe; remove it to keep the chat history in a file")
    elif path.exists() and path.stat().st_size:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"  # without its log, which may belong to another file
        with (
            contextlib.suppress(sqlite3.Error, UnicodeDecodeError),
            contextlib.closing(sqlite3.connect(uri, uri=True)) as found,
        ):
            tables = {row[0] for row in found.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables and len(tables & _OURS) < _ENOUGH:
                what = "another program's database"
    if not what:
        return None
    from codecompanion.store.damage.salvage import keep_damaged  # not needed at startup

    kept = keep_damaged(path, now, f"{what} was found in place of the chat history; it was not changed")
    for suffix in marks.BESIDE:
        with contextlib.suppress(FileNotFoundError):
            marks.beside(path, suffix).rename(marks.beside(kept, suffix))
    return StoreCorrupt(f"The chat history was replaced by {what}, kept as {kept.name}; {SEE_RESTORE}")


def _was_emptied(path: Path) -> bool:
    """Return whether a database that was in use here, according to its list of marks, is now empty or missing."""
    is_there = path.exists() and path.stat().st_size > 0
    return not is_there and marks.read_belonging(path.resolve()) is not None


def _lost_frames(connection: sqlite3.Connection, commits: int) -> int:
    """Return the number of pages in the write-ahead log that SQLite skipped after a damaged page."""
    _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return max(0, commits - int(frames))


def _open_sound(path: Path) -> sqlite3.Connection:
    """Return the migrated write connection; raises `sqlite3.DatabaseError` if the file is damaged."""
    create_private_file(path)
    connection = connect(path)
    try:
        _migrate(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        _look_for_damage(connection, path)
        _try_to_write(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate the file; a version that does not match the tables (as in a restored dump) counts as damage."""
    found = version_of(connection)
    if found < 0 or (not found and connection.execute("SELECT 1 FROM sqlite_master").fetchone()):
        raise damage(f"the file has tables, but its version is {found}")
    try:
        migrate(connection, str(path))
    except sqlite3.OperationalError as error:
        if primary_code(error) == sqlite3.SQLITE_ERROR:  # a statement that does not match the tables
            raise damage(f"the tables are not those of version {found}: {error}") from error
        raise


def _try_to_write(connection: sqlite3.Connection) -> None:
    """Check that the file can be written; BEGIN IMMEDIATE alone succeeds on a read-only file."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(f"PRAGMA user_version = {version_of(connection)}")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _look_for_damage(connection: sqlite3.Connection, path: Path) -> None:
    """Check both ends of every table for damage, and the whole file only if it is suspect (a second per GB)."""
    if not marks.beside(path, "-wal").exists() or not marks.beside(path, "-wal").stat().st_size:
        (pages,), (size,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
        if path.stat().st_size < pages * size:
            raise damage("the file is shorter than its header says")
    connection.execute("SELECT max(id) FROM events").fetchone()
    connection.execute("SELECT count(*) FROM leases").fetchone()
    connection.execute("SELECT chat_id FROM chats LIMIT 1").fetchone()
    if suspicion_of(path).exists():
        lines = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
        if lines != ["ok"]:
            raise damage(str(lines[0]))
        # SQLite's check covers pages only, not the content of the full-text index.
        connection.execute("INSERT INTO message_text(message_text) VALUES ('integrity-check')")
        connection.execute("INSERT INTO message_inner(message_inner) VALUES ('integrity-check')")
        suspicion_of(path).unlink(missing_ok=True)


def damage(text: str) -> sqlite3.DatabaseError:
    """Return the error that SQLite itself would raise for the damage."""
    error = sqlite3.DatabaseError(text)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error
