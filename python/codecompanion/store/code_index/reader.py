"""Reads a code index: files, chunks and names. Ranking and full-text search are in other modules.

The reader has one connection, which a lock restricts to one thread at a time; after a rebuild, it opens the new file.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.model.code import Definition
from codecompanion.store.code_index.index_tables import IndexUnusable, open_existing, unusable_or_unavailable
from codecompanion.store.code_index.name_hashes import NAMED, asked
from codecompanion.store.code_index.outlines import unpack_signatures
from codecompanion.store.sqlite_connection import explain


class IndexCounts(msgspec.Struct, frozen=True):
    """The size of an index; `bytes` includes its write-ahead log."""

    files: int = 0
    chunks: int = 0
    symbols: int = 0
    vectors: int = 0
    bytes: int = 0
    is_complete: bool = False


class KnownFile(msgspec.Struct, frozen=True):
    """The row of a file in the index; `mtime_ns` -1 means that it was indexed from an unsaved buffer."""

    path: str
    mtime_ns: int
    size: int
    sha256: bytes
    language: str
    lines: int
    is_parsed: bool
    why_not: str = ""


class FoundDefinition(msgspec.Struct, frozen=True):
    """A definition and the path of its file."""

    path: str
    definition: Definition


class IndexReader:
    """Reads the index at a path, which may not exist yet.

    Every method raises `FileNotFoundError` if the index does not exist, `IndexUnusable` if the file is damaged or in
    another format, `StoreUnavailable` if it cannot be read now.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for the `with` block, in which all reads see the same state of the index."""
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
        """Return the counts and the size of the index."""
        tables = ("files WHERE why_not = ''", "chunks", "symbols", "vectors")
        with self.reading() as connection:
            numbers = [
                int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - our own names
                for table in tables
            ]
            is_complete = self._meta(connection, "complete") == "1"
        size = sum(path.stat().st_size for path in (self.path, self._wal()) if path.exists())
        files, chunks, symbols, vectors = numbers
        return IndexCounts(files, chunks, symbols, vectors, size, is_complete)

    def meta(self, key: str) -> str:
        """Return a value of `meta`, or "" if it is not set."""
        with self.reading() as connection:
            return self._meta(connection, key)

    def stats(self) -> dict[str, tuple[int, int]]:
        """Return path → (mtime_ns, size) of every file, even of those not indexed, for comparison with the disk."""
        with self.reading() as connection:
            rows = connection.execute("SELECT path, mtime_ns, size FROM files")
            return {path: (mtime_ns, size) for path, mtime_ns, size in rows}

    def data_version(self) -> int:
        """Return a number that changes after another connection has written."""
        with self._lock:
            try:
                return int(self._open().execute("PRAGMA data_version").fetchone()[0]) + (self._inode << 32)
            except sqlite3.Error as error:
                self._close()
                raise unusable_or_unavailable(error, self.path) from error

    def digest(self, path: str) -> bytes:
        """Return the SHA-256 of the indexed content of a file, or b"" if the file is not indexed."""
        with self.reading() as connection:
            row = connection.execute("SELECT sha256 FROM files WHERE path = ?", (path,)).fetchone()
            return bytes(row[0]) if row else b""

    def left_out(self) -> list[tuple[str, str]]:
        """Return `(path, reason)` for each file left out because of its content, sorted."""
        with self.reading() as connection:
            return list(connection.execute("SELECT path, why_not FROM files WHERE why_not <> '' ORDER BY path"))

    def files(self) -> dict[str, KnownFile]:
        """Return path → row of every file."""
        query = "SELECT path, mtime_ns, size, sha256, language, lines, is_parsed, why_not FROM files"
        with self.reading() as connection:
            return {
                path: KnownFile(path, mtime_ns, size, digest, language, lines, bool(is_parsed), why_not)
                for path, mtime_ns, size, digest, language, lines, is_parsed, why_not in connection.execute(query)
            }

    def definitions_named(self, names: Sequence[str], limit: int = 200) -> list[FoundDefinition]:
        """Return the definitions with exactly these names."""
        with self.reading() as connection:
            rows = connection.execute(f"{_DEFINITION} WHERE {NAMED} {_ORDER}", (*asked(names), limit)).fetchall()
        return self._found(rows)

    def members_of(self, path: str, parent: str, limit: int = 50) -> list[Definition]:
        """Return the definitions inside the definition `parent` ("Outer.Inner") of a file, in order."""
        with self.reading() as connection:
            query = f"{_DEFINITION} WHERE f.path = ? AND s.parent = ? {_ORDER}"
            rows = connection.execute(query, (path, parent, limit)).fetchall()
        return [one.definition for one in self._found(rows)]

    def _found(self, rows: list[tuple[Any, ...]]) -> list[FoundDefinition]:
        found, unpacked = [], dict[str, list[str]]()
        try:
            for path, name, kind, start, end, line, parent, ordinal, packed in rows:
                if path not in unpacked:
                    unpacked[path] = unpack_signatures(packed)
                signature = unpacked[path][ordinal]
                found.append(FoundDefinition(path, Definition(name, kind, start, end, line, signature, parent)))
        except (ValueError, IndexError) as error:
            raise IndexUnusable(f"{self.path}: {error}.") from error
        return found

    def files_using(self, name: str, limit: int = 200) -> list[tuple[str, int]]:
        """Return `(path, uses)` of the files that use a name, the most frequent users first."""
        query = (
            "SELECT f.path, r.uses FROM names n JOIN refs r ON r.name_id = n.id"  # noqa: S608 - our own names
            f" JOIN files f ON f.id = r.file_id WHERE {NAMED} ORDER BY r.uses DESC, f.path LIMIT ?"
        )
        with self.reading() as connection:
            return [tuple(row) for row in connection.execute(query, (*asked([name]), limit))]

    def _meta(self, connection: sqlite3.Connection, key: str) -> str:
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def _wal(self) -> Path:
        return self.path.with_name(self.path.name + "-wal")

    def _open(self) -> sqlite3.Connection:
        """Return the connection to the file currently at the path."""
        try:
            inode = self.path.stat().st_ino
        except FileNotFoundError:
            raise
        except OSError as error:
            raise explain(error, self.path) from error
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
    'SELECT f.path, n.name, s.kind, s.start, s."end", s.line, s.parent, s.ordinal, o.signatures'
    " FROM symbols s JOIN names n ON n.id = s.name_id JOIN files f ON f.id = s.file_id"
    " JOIN outlines o ON o.file_id = s.file_id"
)
_ORDER = "ORDER BY f.path, s.ordinal LIMIT ?"
