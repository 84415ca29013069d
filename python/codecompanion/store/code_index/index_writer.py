"""Writes a code index: adds, removes or refreshes whole files, in one transaction per batch.

Unchanged chunks of a changed file keep their row, with its words and vector; only their line numbers change. The words
of a deleted chunk stay in the full-text index, which cannot remove them without the text. Such chunks are counted;
above `MAX_DEAD` the index should be rebuilt (`should_be_rebuilt`).
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from codecompanion.formats.code_words import index_words
from codecompanion.model.code import CodeChunk, ParsedFile
from codecompanion.store.code_index.index_tables import BUSY_TIMEOUT_S, KINDS, open_to_write, unusable_or_unavailable
from codecompanion.store.code_index.name_hashes import ids_of_defined, name_hash
from codecompanion.store.code_index.names_used import bring_back, forget_references, put_references, set_undefined_aside
from codecompanion.store.code_index.outlines import pack_signatures
from codecompanion.store.sqlite_connection import roll_back

FROM_BUFFER = -1
"""`mtime_ns` of a file indexed from an unsaved buffer."""
MAX_DEAD = 0.5
MAX_REPEATS = 5
"""Maximum number of occurrences of a word that are indexed per column: more add little to BM25 and enlarge the index.
"""
_FEW_CHUNKS = 2_000
_HASH_BYTES = 10
_KIND_IDS = {kind: number for number, kind in enumerate(KINDS)}
_MAX_FREE = 0.1


class IndexedFile(msgspec.Struct, frozen=True):
    """One file to index. `sha256`: hash of its bytes; `lines`: its line count; `why_not`: see the table `files`."""

    path: str
    mtime_ns: int
    size: int
    sha256: bytes
    lines: int
    parsed: ParsedFile
    chunks: Sequence[CodeChunk]
    why_not: str = ""


def chunk_hash(text: str) -> bytes:
    """Return the hash that identifies a chunk's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_HASH_BYTES]


def _own_lines(chunk: CodeChunk) -> str:
    """Return a chunk's text without the prepended signatures, because its symbol contains their names."""
    return "\n".join(chunk.text.split("\n")[chunk.start - chunk.end - 1 :])


def _column(text: str) -> str:
    """Return the words of a chunk's text for the full-text index."""
    seen: Counter[str] = Counter()
    kept = []
    for word in index_words(text):
        seen[word] += 1
        if seen[word] <= MAX_REPEATS:
            kept.append(word)
    return " ".join(kept)


class IndexWriter:
    """A writing connection, for one thread at a time; several processes may each have one.

    Every method raises `IndexUnusable` for a damaged file, `StoreUnavailable` if the disk fails or the database is
    locked.
    """

    def __init__(self, path: Path, root: Path, patience_s: float = BUSY_TIMEOUT_S) -> None:
        """Open the index of the project `root`, creating it if necessary.

        Waits up to `patience_s` seconds for other writers.
        """
        self.path = path
        self._connection = open_to_write(path, root)
        self._connection.execute(f"PRAGMA busy_timeout = {int(patience_s * 1000)}")
        self._names: dict[str, int] = {}

    def close(self) -> None:
        """Close the connection; SQLite merges the write-ahead log into the file if no one else has it open."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def put(self, files: Iterable[IndexedFile], now: int) -> None:
        """Write files, replacing their earlier rows. `now` in seconds since 1970."""
        with self._transaction() as connection:
            is_finished = self._is_finished(connection)
            fresh = set[str]()
            for one in files:
                fresh |= self._put(connection, one, now, is_finished=is_finished)
            if fresh and is_finished:
                bring_back(connection, fresh, lambda name: self._name(connection, name))

    def touch(self, stats: Iterable[tuple[str, int, int]]) -> None:
        """Record new `(path, mtime_ns, size)` of files with unchanged content."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE files SET mtime_ns = ?2, size = ?3 WHERE path = ?1", [tuple(stat) for stat in stats]
            )

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files from the index."""
        with self._transaction() as connection:
            for path in paths:
                row = connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
                if row is not None:
                    self._forget_parsed(connection, row[0])
                    gone = connection.execute("DELETE FROM pieces WHERE file_id = ?", row).rowcount
                    self._count_dead(connection, gone)
                    connection.execute("DELETE FROM files WHERE id = ?", row)

    def set_meta(self, key: str, value: str) -> None:
        """Set one of the values of `meta`."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def clear(self) -> None:
        """Remove every file but keep the vectors, because the same text will reappear."""
        with self._transaction() as connection:
            connection.execute("INSERT INTO chunk_text (chunk_text) VALUES ('delete-all')")
            for table in ("files", "pieces", "definitions", "outlines", "refs", "undefined_refs", "names"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            connection.execute("DELETE FROM meta WHERE key IN ('dead', 'complete')")
            self._names.clear()

    def should_be_rebuilt(self) -> bool:
        """Return whether the index has enough words of deleted chunks to harm search."""
        with self._errors():
            row = self._connection.execute("SELECT value FROM meta WHERE key = 'dead'").fetchone()
            dead = int(row[0]) if row else 0
            if dead < _FEW_CHUNKS:
                return False
            (live,) = self._connection.execute("SELECT count(*) FROM pieces").fetchone()
            return bool(dead > MAX_DEAD * (live + dead))

    def finish(self, *, is_first: bool = False) -> None:
        """Drop unreferenced names, merge the full-text index, and move the write-ahead log into the file.

        `is_first`: every table was just filled file by file, which leaves a sixth of the pages empty.
        """
        with self._transaction() as connection:
            set_undefined_aside(connection)
            used = " UNION ".join(
                f"SELECT {column} FROM {table}"  # noqa: S608 - our own names
                for table in ("definitions", "pieces")
                for column in ("name_id", "parent_id")
            )
            connection.execute(f"DELETE FROM names WHERE id NOT IN ({used})")  # noqa: S608 - our own names
            self._names.clear()
            connection.execute("INSERT INTO chunk_text (chunk_text) VALUES ('optimize')")
        with self._errors():
            (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
            (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
            if is_first or free > pages * _MAX_FREE:
                with contextlib.suppress(sqlite3.Error):  # no disk space, or a reader is active: the file stays larger
                    self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                roll_back(self._connection)
                self._names.clear()  # they contain ids that were rolled back
                raise

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise unusable_or_unavailable(error, self.path) from error

    def _put(self, connection: sqlite3.Connection, one: IndexedFile, now: int, *, is_finished: bool) -> set[str]:
        """Write a file; return the names that this file is the first in the project to define."""
        row = connection.execute("SELECT id FROM files WHERE path = ?", (one.path,)).fetchone()
        known = row[0] if row else None
        fresh = self._defined_first(connection, one.parsed) if is_finished else set[str]()
        if known is not None:
            self._forget_parsed(connection, known)
        values = (
            *(known, one.path, one.mtime_ns, one.size, one.sha256, one.parsed.language, one.lines),
            *(one.parsed.is_parsed, now, one.why_not),
        )
        cursor = connection.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        file_id = known if known is not None else int(cursor.lastrowid or 0)
        self._put_chunks(connection, file_id, one, is_new=known is None)
        self._put_symbols(connection, file_id, one.parsed)
        uses = Counter(reference.name for reference in one.parsed.references)
        put_references(connection, file_id, uses, lambda name: self._name(connection, name), is_finished=is_finished)
        return fresh

    def _is_finished(self, connection: sqlite3.Connection) -> bool:
        row = connection.execute("SELECT value FROM meta WHERE key = 'complete'").fetchone()
        return row is not None and row[0] == "1"

    def _defined_first(self, connection: sqlite3.Connection, parsed: ParsedFile) -> set[str]:
        """Return the defined names that nothing in the index defines yet, not even an earlier version of the file."""
        names = {one.name for one in parsed.definitions}
        return names - ids_of_defined(connection, names).keys()

    def _put_chunks(self, connection: sqlite3.Connection, file_id: int, one: IndexedFile, *, is_new: bool) -> None:
        """Write the chunks; unchanged ones keep their row."""
        kept: dict[tuple[bytes, str, str], list[tuple[int, int, int]]] = defaultdict(list)
        if not is_new:
            query = 'SELECT id, hash, symbol, kind, start, "end" FROM chunks WHERE file_id = ? ORDER BY id DESC'
            for row, digest, symbol, kind, start, end in connection.execute(query, (file_id,)):
                kept[digest, symbol, kind].append((row, start, end))
        path = " ".join(index_words(one.path))
        for chunk in one.chunks:
            digest = chunk_hash(chunk.text)
            same = kept.get((digest, chunk.symbol, chunk.kind))
            if same:
                row, start, end = same.pop()
                if (start, end) != (chunk.start, chunk.end):
                    connection.execute(
                        "UPDATE pieces SET start = ?, more_lines = ? WHERE id = ?",
                        (chunk.start, chunk.end - chunk.start, row),
                    )
                continue
            parent, _, name = chunk.symbol.rpartition(".")
            ids = self._name(connection, parent), self._name(connection, name), _KIND_IDS[chunk.kind]
            cursor = connection.execute(
                "INSERT INTO pieces (file_id, start, more_lines, parent_id, name_id, kind_id, hash)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (file_id, chunk.start, chunk.end - chunk.start, *ids, digest),
            )
            connection.execute(
                "INSERT INTO chunk_text (rowid, path, symbol, text) VALUES (?, ?, ?, ?)",
                (cursor.lastrowid, path, " ".join(index_words(chunk.symbol)), _column(_own_lines(chunk))),
            )
        gone = [(row,) for rows in kept.values() for row, _, _ in rows]
        connection.executemany("DELETE FROM pieces WHERE id = ?", gone)
        self._count_dead(connection, len(gone))

    def _put_symbols(self, connection: sqlite3.Connection, file_id: int, parsed: ParsedFile) -> None:
        symbols = []
        for ordinal, one in enumerate(parsed.definitions):
            name = self._name(connection, one.name)
            kind, parent = _KIND_IDS[one.kind], self._name(connection, one.parent)
            lines = one.start, one.end - one.start, one.line - one.start
            symbols.append((file_id, ordinal, name, kind, parent, *lines))
        if symbols:
            connection.executemany("INSERT INTO definitions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", symbols)
            packed = pack_signatures(parsed.definitions)
            connection.execute("INSERT INTO outlines VALUES (?, ?)", (file_id, packed))

    def _name(self, connection: sqlite3.Connection, name: str) -> int:
        known = self._names.get(name)
        if known is None:
            given = name, name_hash(name)
            row = connection.execute("SELECT id FROM names WHERE hash = ?2 AND name = ?1", given).fetchone()
            if row is None:
                added = connection.execute("INSERT INTO names (name, hash) VALUES (?, ?)", given)
                known = int(added.lastrowid or 0)
            else:
                known = int(row[0])
            self._names[name] = known
        return known

    def _forget_parsed(self, connection: sqlite3.Connection, file_id: int) -> None:
        connection.execute("DELETE FROM definitions WHERE file_id = ?", (file_id,))
        connection.execute("DELETE FROM outlines WHERE file_id = ?", (file_id,))
        forget_references(connection, file_id)

    def _count_dead(self, connection: sqlite3.Connection, count: int) -> None:
        if count:
            connection.execute(
                "INSERT INTO meta VALUES ('dead', ?) ON CONFLICT (key) DO UPDATE SET value = value + excluded.value",
                (str(count),),
            )
