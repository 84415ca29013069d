"""Repairs a damaged database: keeps the file, saves its readable content into a new one, and reports the result.

Only copies are read; the damaged file itself is renamed, never written (at most SQLite merged its WAL into it while
trying to open it). A lost first page (header and table of contents) is replaced by that of a fresh database of this
version, whose tables start on the same pages. Then the log is read normally, which returns the genuine rows first, and
every page is scanned for rows that a broken tree hides (`carve`). The new file is complete before anything is renamed,
and `finish_swap` completes an interrupted exchange, so a crash at any point loses nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from codecompanion.errors import StoreCorrupt
from codecompanion.formats.plural import counted
from codecompanion.model.history import LogEvent
from codecompanion.store.damage.carve import PAGE_BYTES, CarvedRow, carve_events
from codecompanion.store.damage.marks import REBUILT
from codecompanion.store.log import scratch
from codecompanion.store.log.checksum import is_event_sound
from codecompanion.store.log.encoding import from_bytes
from codecompanion.store.log.event_rows import restore_events
from codecompanion.store.log.migrations import migrate
from codecompanion.store.sqlite_connection import SEE_RESTORE, connect, create_private_file

_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.stem + ending)


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


class Saved(msgspec.Struct, frozen=True):
    """The amount of content saved from a damaged database."""

    chats: int
    entries: int
    missing: int

    def sentence(self) -> str:
        """Return the notice for the user; the essentials fit into 80 columns, the rest is in `:checkhealth`."""
        if not self.chats:
            return f"Damaged chat history: nothing readable; {SEE_RESTORE}"
        if self.missing:
            lost = f"{counted(self.missing, 'entry', 'entries')} lost"
            return f"Damaged chats: {self.chats:,} saved, {lost}; {SEE_RESTORE}"
        return f"Damaged chat history: {counted(self.chats, 'chat')} saved; {SEE_RESTORE}"

    def story(self) -> str:
        """Return the details for `:checkhealth`."""
        if not self.chats:
            return "nothing in it could be read, so an empty one was created"
        saved = f"{counted(self.chats, 'chat')} with {counted(self.entries, 'entry', 'entries')} saved"
        return f"{saved}, {f'{self.missing:,} could not be read' if self.missing else 'nothing is missing'}"


class KeptFile(msgspec.Struct, frozen=True):
    """A damaged database that was set aside, and the details of its repair."""

    path: Path
    story: str


def kept_files(path: Path) -> list[KeptFile]:
    """Return the damaged files beside the database, oldest first."""
    found = sorted(path.parent.glob(f"{path.stem}.damaged-*.db"))
    return [KeptFile(file, _read_story(file)) for file in found]


def keep_damaged(path: Path, now: float, story: str) -> Path:
    """Rename an unusable file, and store an explanation for `:checkhealth`."""
    kept = _free_name(path, time.strftime("%Y%m%d-%H%M%S", time.localtime(now)))
    path.rename(kept)
    _tell(kept, story)
    return kept


def _tell(kept: Path, story: str) -> None:
    create_private_file(_story(kept))
    _story(kept).write_text(story)


def _story(kept: Path) -> Path:
    return kept.with_suffix(".txt")


def _read_story(kept: Path) -> str:
    try:
        return " ".join(_story(kept).read_text(errors="replace").split())[:500]
    except OSError:
        return ""


def repair(path: Path, now: float) -> StoreCorrupt:
    """Replace the damaged database with a new one that has all readable content; return the error for the user.

    Raises:
        OSError, sqlite3.Error: the new file cannot be written; the damaged file is unchanged.
    """
    import shutil  # slow to import

    copy, fresh = _beside(path, ".salvage.tmp"), _beside(path, ".rebuild.tmp")
    for leftover in (copy, _wal(copy), fresh, _wal(fresh)):
        leftover.unlink(missing_ok=True)
    try:
        create_private_file(copy)
        shutil.copyfile(path, copy)
        if _wal(path).exists():
            create_private_file(_wal(copy))
            shutil.copyfile(_wal(path), _wal(copy))
        saved = _rebuild(copy, fresh)
    except BaseException:
        for suffix in ("", "-wal", "-shm"):
            fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
        raise
    finally:
        for suffix in ("", "-wal", "-shm"):
            copy.with_name(copy.name + suffix).unlink(missing_ok=True)
    fresh.replace(_beside(path, REBUILT))
    kept = finish_swap(path, now)
    if kept is not None:
        _tell(kept, saved.story())
    return StoreCorrupt(saved.sentence())


def finish_swap(path: Path, now: float) -> Path | None:
    """Put a completely rebuilt database in place, if there is one; return the path of the damaged one, or None."""
    rebuilt = _beside(path, REBUILT)
    if not rebuilt.exists():
        return None
    kept = _free_name(path, time.strftime("%Y%m%d-%H%M%S", time.localtime(now)))
    if path.exists():
        path.rename(kept)
    if _wal(path).exists():
        _wal(path).rename(_wal(kept))
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    rebuilt.rename(path)
    return kept


def _free_name(path: Path, stamp: str) -> Path:
    kept, number = _beside(path, f".damaged-{stamp}.db"), 1
    while kept.exists() or _wal(kept).exists():
        number += 1
        kept = _beside(path, f".damaged-{stamp}-{number}.db")
    return kept


def _rebuild(copy: Path, fresh: Path) -> Saved:
    """Fill a new database from the copy and return the result."""
    if not _knows_its_tables(copy):
        _lend_first_page(copy)
    create_private_file(fresh)
    reading = _Reading(copy)
    with contextlib.closing(connect(fresh)) as target:
        migrate(target, str(fresh))
        target.execute("BEGIN IMMEDIATE")
        written = restore_events(target, reading.events())
        reading.copy_scratch(target)
        missing = reading.count_entries(target) - sum(written.values())
        target.execute("COMMIT")
    return Saved(len(written), sum(written.values()), max(0, missing))


class _Reading:
    """Reads the copy, skipping faults."""

    def __init__(self, copy: Path) -> None:
        self._copy = copy

    @contextlib.contextmanager
    def _source(self) -> Iterator[sqlite3.Connection]:
        source = sqlite3.connect(self._copy, isolation_level=None)
        try:
            # Lets SQLite read a file that is shorter than its header says.
            source.execute("PRAGMA writable_schema = ON")
            yield source
        finally:
            source.close()

    def events(self) -> Iterator[tuple[str, LogEvent]]:
        """Yield every readable event, most of them twice."""
        for chat_id, seq, ts, stored, stored_sum in itertools.chain(self._scan(), self._carve()):
            # A column of the wrong type counts as damage.
            with contextlib.suppress(msgspec.MsgspecError, TypeError, ValueError):
                if is_event_sound(int(seq), float(ts), stored, stored_sum):
                    yield str(chat_id), LogEvent(int(seq), float(ts), from_bytes(stored))

    def _scan(self) -> Iterator[CarvedRow]:
        with self._source() as source, contextlib.suppress(*_UNREADABLE):
            columns = {row[1] for row in source.execute("PRAGMA table_info(events)")}
            if "sum" not in columns:  # an older version
                source.execute("ALTER TABLE events ADD COLUMN sum INTEGER")
            yield from source.execute("SELECT chat_id, seq, ts, payload, sum FROM events ORDER BY id")

    def _carve(self) -> Iterator[CarvedRow]:
        with self._source() as source, contextlib.suppress(*_UNREADABLE):
            source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        yield from carve_events(self._copy)

    def count_entries(self, target: sqlite3.Connection) -> int:
        """Return the original number of events according to the totals of the old and new files."""
        newest: dict[str, int] = dict(target.execute("SELECT chat_id, last_seq FROM chats"))
        with self._source() as source, contextlib.suppress(*_UNREADABLE):
            for chat_id, last_seq in source.execute("SELECT chat_id, last_seq FROM chats"):
                if isinstance(chat_id, str) and isinstance(last_seq, int):
                    newest[chat_id] = max(newest.get(chat_id, 0), last_seq)
        return sum(newest.values())

    def copy_scratch(self, target: sqlite3.Connection) -> None:
        """Copy drafts, partial replies and calibration as far as they are readable."""
        with self._source() as source:
            with contextlib.suppress(*_UNREADABLE):
                for row in source.execute(
                    "SELECT chat_id, kind, text, updated FROM scratch WHERE typeof(text) = 'blob'"
                ):
                    target.execute("INSERT OR IGNORE INTO scratch(chat_id, kind, text, updated) VALUES (?,?,?,?)", row)
            with contextlib.suppress(*_UNREADABLE):
                for calibration in scratch.load_calibration(source):
                    scratch.save_calibration(target, calibration)


def _knows_its_tables(copy: Path) -> bool:
    """Return whether the first page of the copy can be read, using a separate connection."""
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as source:
        try:
            source.execute("PRAGMA writable_schema = ON")
            return source.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone() is not None
        except _UNREADABLE:
            return False


def _lend_first_page(copy: Path) -> None:
    """Overwrite the first page of the copy with that of a fresh database."""
    pages = copy.stat().st_size // PAGE_BYTES
    if pages < 2:
        return
    with contextlib.closing(connect(None)) as template:
        migrate(template, "a fresh database")
        page = bytearray(template.serialize()[:PAGE_BYTES])
    page[18:20] = b"\x02\x02"  # WAL mode
    struct.pack_into(">III", page, 28, pages, 0, 0)  # size in pages; no free list
    page[92:96] = page[24:28]  # the size counts only when both change counters agree
    with copy.open("r+b") as file:
        file.write(page)
