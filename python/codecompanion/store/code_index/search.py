"""Searches a code index: chunks by words, definitions by name, and uses between files (R-230, R-231).

Each function reads within `IndexReader.reading()`. The number of rows it reads is bounded by its arguments, not by the
size of the project; SQLite itself walks the postings of the query's words.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from codecompanion.store.code_index.name_hashes import NAMED, asked

MAX_DEFINERS = 5
"""Maximum number of files that define a name; if more do, a use of the name is not evidence of a link between files."""
MAX_USERS = 200


class ChunkRow(msgspec.Struct, frozen=True):
    """A matching chunk; `bm25` is SQLite's score: negative, and smaller for a better match."""

    chunk: int
    file: int
    start: int
    end: int
    symbol: str
    kind: str
    bm25: float


class DefinitionRow(msgspec.Struct, frozen=True):
    """A definition of a requested name."""

    file: int
    name: str
    start: int
    end: int
    line: int
    kind: str
    parent: str


def find_chunks(
    connection: sqlite3.Connection, match: str, columns: tuple[float, float, float], limit: int, below: str = ""
) -> list[ChunkRow]:
    """Return the best chunks for an FTS query; `columns`: weights of path, symbol, text; `below`: only below this path.

    Sorts by an expression, because `ORDER BY rank` makes FTS5 write each match into a sorter first, which takes 50 %
    longer.
    """
    if not below:
        query = (
            'SELECT c.id, c.file_id, c.start, c."end", c.symbol, c.kind, hit.score FROM'
            " (SELECT rowid, bm25(chunk_text, ?, ?, ?) AS score FROM chunk_text WHERE chunk_text MATCH ?"
            " ORDER BY score LIMIT ?) AS hit"
            " CROSS JOIN chunks c ON c.id = hit.rowid ORDER BY hit.score"
        )
        return [ChunkRow(*row) for row in connection.execute(query, (*columns, match, limit))]
    query = (
        'SELECT c.id, c.file_id, c.start, c."end", c.symbol, c.kind, hit.score FROM'
        " (SELECT p.id, bm25(chunk_text, ?, ?, ?) AS score FROM chunk_text"
        " CROSS JOIN pieces p ON p.id = chunk_text.rowid"
        " WHERE chunk_text MATCH ? AND p.file_id IN (SELECT id FROM files WHERE path = ? OR substr(path, 1, ?) = ?)"
        " ORDER BY score LIMIT ?) AS hit"
        " CROSS JOIN chunks c ON c.id = hit.id ORDER BY hit.score"
    )
    folder = below.rstrip("/") + "/"
    values = (*columns, match, below, len(folder), folder, limit)
    return [ChunkRow(*row) for row in connection.execute(query, values)]


def chunks_by_id(connection: sqlite3.Connection, chunks: Iterable[int]) -> list[ChunkRow]:
    """Return the chunks with these ids; `bm25` is 0."""
    query = 'SELECT id, file_id, start, "end", symbol, kind, 0.0 FROM chunks WHERE id = ?'
    rows = (connection.execute(query, (chunk,)).fetchone() for chunk in chunks)
    return [ChunkRow(*row) for row in rows if row]


def chunks_of(connection: sqlite3.Connection, file: int) -> list[ChunkRow]:
    """Return the chunks of a file, in order."""
    query = 'SELECT id, file_id, start, "end", symbol, kind, 0.0 FROM chunks WHERE file_id = ? ORDER BY start'
    return [ChunkRow(*row) for row in connection.execute(query, (file,))]


def first_chunk(connection: sqlite3.Connection, file: int) -> ChunkRow | None:
    """Return the first chunk of a file, or None when it has none."""
    query = 'SELECT id, file_id, start, "end", symbol, kind, 0.0 FROM chunks WHERE file_id = ? ORDER BY start LIMIT 1'
    row = connection.execute(query, (file,)).fetchone()
    return ChunkRow(*row) if row else None


def chunk_at(connection: sqlite3.Connection, file: int, line: int) -> ChunkRow | None:
    """Return the chunk of a file that contains a line."""
    query = (
        'SELECT id, file_id, start, "end", symbol, kind, 0.0 FROM chunks'
        ' WHERE file_id = ? AND start <= ? AND "end" >= ?'
        " ORDER BY start DESC LIMIT 1"
    )
    row = connection.execute(query, (file, line, line)).fetchone()
    return ChunkRow(*row) if row else None


def file_paths(connection: sqlite3.Connection) -> dict[int, str]:
    """Return id → path of every file."""
    return dict(connection.execute("SELECT id, path FROM files"))


def indexed_at(connection: sqlite3.Connection, files: Iterable[int]) -> dict[int, int]:
    """Return when each of the files was indexed, in seconds since 1970."""
    query = "SELECT id, indexed_at FROM files WHERE id IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(query, (json.dumps(list(files)),)))


def data_version(connection: sqlite3.Connection) -> int:
    """Return a number that changes after another connection has written."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def find_definitions(connection: sqlite3.Connection, names: Sequence[str], limit: int = 200) -> list[DefinitionRow]:
    """Return the definitions with exactly these names."""
    query = (
        'SELECT s.file_id, n.name, s.start, s."end", s.line, s.kind, s.parent FROM names n'  # noqa: S608 - our own names
        f" JOIN symbols s ON s.name_id = n.id WHERE {NAMED} LIMIT ?"
    )
    return [DefinitionRow(*row) for row in connection.execute(query, (*asked(names), limit))]


def names_used_in(connection: sqlite3.Connection, file: int) -> list[tuple[int, str, int]]:
    """Return `(name id, name, uses)` for the names that a file uses."""
    query = "SELECT r.name_id, n.name, r.uses FROM refs r JOIN names n ON n.id = r.name_id WHERE r.file_id = ?"
    return list(connection.execute(query, (file,)))


def names_defined_in(connection: sqlite3.Connection, file: int) -> list[tuple[int, str]]:
    """Return `(name id, name)` for the names that a file defines."""
    query = "SELECT DISTINCT s.name_id, n.name FROM symbols s JOIN names n ON n.id = s.name_id WHERE s.file_id = ?"
    return list(connection.execute(query, (file,)))


def definers_of(connection: sqlite3.Connection, name: int) -> tuple[int, ...]:
    """Return the files that define a name, at most `MAX_DEFINERS` + 1."""
    query = "SELECT DISTINCT file_id FROM symbols WHERE name_id = ? LIMIT ?"
    return tuple(row[0] for row in connection.execute(query, (name, MAX_DEFINERS + 1)))


def users_of(connection: sqlite3.Connection, name: int) -> list[tuple[int, int]]:
    """Return `(file, uses)` of the files that use a name."""
    query = "SELECT file_id, uses FROM refs WHERE name_id = ? LIMIT ?"
    return list(connection.execute(query, (name, MAX_USERS)))


class ReferenceGraph:
    """Graph of name uses between files, read for the requested files and cached until the index changes."""

    def __init__(self) -> None:
        self._definers: dict[int, tuple[int, ...]] = {}
        self._edges: dict[int, dict[tuple[int, int], float]] = {}

    def clear(self) -> None:
        """Drop the cache, because the index has changed."""
        self._definers.clear()
        self._edges.clear()

    def edges_of(self, connection: sqlite3.Connection, files: Iterable[int]) -> Mapping[tuple[int, int], float]:
        """Return `(user, definer)` → strength for every use of names between these files and others."""
        found = dict[tuple[int, int], float]()
        for file in files:
            if file not in self._edges:
                self._edges[file] = self._read(connection, file)
            found.update(self._edges[file])
        return found

    def _read(self, connection: sqlite3.Connection, file: int) -> dict[tuple[int, int], float]:
        edges = dict[tuple[int, int], float]()
        for name, text, uses in names_used_in(connection, file):
            definers = self._definers_of(connection, name)
            if file not in definers:
                for other in definers:
                    _add(edges, (file, other), strength(text, uses) / len(definers))
        for name, text in names_defined_in(connection, file):
            definers = self._definers_of(connection, name)
            if definers:
                for other, uses in users_of(connection, name):
                    if other not in definers:
                        _add(edges, (other, file), strength(text, uses) / len(definers))
        return edges

    def _definers_of(self, connection: sqlite3.Connection, name: int) -> tuple[int, ...]:
        """Return the files that define a name, or () if there are too many to tell which one is meant."""
        if name not in self._definers:
            definers = definers_of(connection, name)
            self._definers[name] = definers if len(definers) <= MAX_DEFINERS else ()
        return self._definers[name]


def strength(name: str, uses: int) -> float:
    """Return the weight of a name's use: a name made of several words is rarely used by chance."""
    is_compound = "_" in name.strip("_") or (name[1:].lower() != name[1:] and name.upper() != name)
    return float(uses**0.5 * (1.0 if is_compound else 0.3)) if len(name) > 2 else 0.0


def _add(edges: dict[tuple[int, int], float], edge: tuple[int, int], weight: float) -> None:
    if weight:
        edges[edge] = edges.get(edge, 0.0) + weight
