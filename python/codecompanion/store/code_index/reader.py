"""Reading a code index: what is known of files, chunks and names. Ranking and full-text search stand beside it.

One connection, used by one thread at a time (a lock); it notices when the file was made again and opens the new one.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from codecompanion.model.code import Definition
from codecompanion.store.code_index.schema import open_existing, unusable_or_unavailable


class IndexCounts(msgspec.Struct, frozen=True):
    """How much an index holds; `bytes` on disk, its write-ahead log included."""

    files: int = 0
    chunks: int = 0
    symbols: int = 0
    vectors: int = 0
    bytes: int = 0
    is_complete: bool = False


class KnownFile(msgspec.Struct, frozen=True):
    """What the index remembers of a file; `mtime_ns` -1: it was indexed from an unsaved buffer."""

    path: str
    mtime_ns: int
    size: int
    sha256: bytes
    language: str
    lines: int
    is_parsed: bool


class FoundDefinition(msgspec.Struct, frozen=True):
    """A definition and the file it stands in."""

    path: str
    definition: Definition


class IndexReader:
    """A reading connection to the index at a path; there need not be one yet.

    Every method raises `FileNotFoundError` when there is none, `IndexUnusable` when the file is damaged or of another
    format, `StoreUnavailable` when it cannot be read now.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to the block; what the block reads belongs to one state of the index."""
        with self._lock:
            connection = self._open()
            try:
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                self._close()
                raise unusable_or_unavailable(error, self.path) from error

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            self._close()

    def counts(self) -> IndexCounts:
        """Return how much there is."""
        with self.reading() as connection:
            numbers = [
                int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - our own names
                for table in ("files", "chunks", "symbols", "vectors")
            ]
            is_complete = self._meta(connection, "complete") == "1"
        size = sum(path.stat().st_size for path in (self.path, self._wal()) if path.exists())
        files, chunks, symbols, vectors = numbers
        return IndexCounts(files, chunks, symbols, vectors, size, is_complete)

    def meta(self, key: str) -> str:
        """Return a value of `meta`, "" = none."""
        with self.reading() as connection:
            return self._meta(connection, key)

    def files(self) -> dict[str, KnownFile]:
        """Return path → what is known of it."""
        query = "SELECT path, mtime_ns, size, sha256, language, lines, is_parsed FROM files"
        with self.reading() as connection:
            return {
                path: KnownFile(path, mtime_ns, size, digest, language, lines, bool(is_parsed))
                for path, mtime_ns, size, digest, language, lines, is_parsed in connection.execute(query)
            }

    def definitions_named(self, names: Sequence[str], limit: int = 200) -> list[FoundDefinition]:
        """Return the definitions of these names, exactly as written."""
        marks = ",".join("?" * len(names))
        query = f"{_DEFINITION} WHERE n.name IN ({marks}) ORDER BY f.path, s.line LIMIT ?"
        with self.reading() as connection:
            return [_found(row) for row in connection.execute(query, (*names, limit))]

    def definitions_in(self, path: str) -> list[Definition]:
        """Return the definitions of a file, in order."""
        with self.reading() as connection:
            rows = connection.execute(f"{_DEFINITION} WHERE f.path = ? ORDER BY s.line", (path,))
            return [_found(row).definition for row in rows]

    def files_using(self, name: str, limit: int = 200) -> list[tuple[str, int, int]]:
        """Return `(path, first line, uses)` of the files that use a name, those that use it most first."""
        query = (
            "SELECT f.path, r.line, r.uses FROM names n JOIN refs r ON r.name_id = n.id"
            " JOIN files f ON f.id = r.file_id WHERE n.name = ? ORDER BY r.uses DESC, f.path LIMIT ?"
        )
        with self.reading() as connection:
            return [tuple(row) for row in connection.execute(query, (name, limit))]

    def _meta(self, connection: sqlite3.Connection, key: str) -> str:
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def _wal(self) -> Path:
        return self.path.with_name(self.path.name + "-wal")

    def _open(self) -> sqlite3.Connection:
        """Return the connection to the file that is at the path now."""
        inode = self.path.stat().st_ino
        if self._connection is None or inode != self._inode:
            self._close()
            self._connection = open_existing(self.path, read_only=True)
            self._inode = inode
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


_DEFINITION = (
    'SELECT f.path, n.name, s.kind, s.start, s."end", s.line, s.signature, s.parent'
    " FROM symbols s JOIN names n ON n.id = s.name_id JOIN files f ON f.id = s.file_id"
)


def _found(row: tuple[str, ...]) -> FoundDefinition:
    return FoundDefinition(row[0], msgspec.convert(dict(zip(_FIELDS, row[1:], strict=True)), Definition))


_FIELDS = ("name", "kind", "start", "end", "line", "signature", "parent")
