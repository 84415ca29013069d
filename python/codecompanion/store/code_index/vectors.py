"""Stores the vectors of a code index, lists chunks without one, and finds those nearest to a query (R-232, R-239).

A vector is keyed by the hash of a chunk's text and the name of the model, not by a location. So it also applies to the
same text in other files, survives a rebuild of the index, and lets an interrupted run continue. An empty vector records
that the model returned nothing usable for an input, so it is not tried again.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import mul
from pathlib import Path
from typing import TypeVar

import msgspec

from codecompanion.model.embedding import Vector
from codecompanion.store.code_index.index_tables import (
    INDEX_BY_HASH,
    INSERT_VECTORS,
    open_existing,
    unusable_or_unavailable,
)
from codecompanion.store.code_index.packed_vectors import PackedVectors, exact_cosines
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.store.sqlite_connection import roll_back

_Value = TypeVar("_Value")
_MARKS_IN_A_QUERY = 500
_VECTORS = "SELECT c.id, v.vector FROM chunks c JOIN vectors v ON v.hash = c.hash"
_CHUNKS_OF_VECTORS = "SELECT p.id, v.id FROM vectors v CROSS JOIN pieces p ON p.hash = v.hash WHERE v.id IN"
_READ_AT_ONCE = 500
_COUNT_REMOVAL = "INSERT INTO meta VALUES ('vectors_removed', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1"
_SPARE = 4.0
"""Maximum ratio of stored to used vectors; vectors of deleted chunks are kept, because a checkout may restore the
chunks.
"""
_FEW = 5_000


class Missing(msgspec.Struct, frozen=True):
    """A file with chunks that lack a vector of a model.

    `chunks`: their number; `all_chunks`: the number of all its chunks; `size`: the file's size.
    """

    path: str
    chunks: int
    all_chunks: int
    size: int


class VectorWriter:
    """Writes only the vectors of an existing index. For one thread at a time.

    Every method raises `IndexUnusable` for a damaged file, `StoreUnavailable` if the disk fails or the database is
    locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = open_existing(path)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def missing(self, model: str) -> list[Missing]:
        """Return the files with chunks that have no vector, in the order in which they were indexed."""
        query = (
            "SELECT f.path, sum(v.hash IS NULL), count(*), f.size FROM chunks c JOIN files f ON f.id = c.file_id"
            " LEFT JOIN vectors v ON v.hash = c.hash AND v.model = ? GROUP BY f.id HAVING sum(v.hash IS NULL) > 0"
            " ORDER BY min(c.id)"
        )
        with self._errors():
            return [Missing(*row) for row in self._connection.execute(query, (model,))]

    def known(self, model: str, hashes: Iterable[bytes]) -> set[bytes]:
        """Return the hashes that have a vector of the model."""
        found: set[bytes] = set()
        with self._errors():
            for part in _parts(list(hashes)):
                query = f"SELECT hash FROM vectors WHERE model = ? AND hash IN ({_marks(part)})"  # noqa: S608 - marks only
                found.update(row[0] for row in self._connection.execute(query, (model, *part)))
        return found

    def put(self, model: str, vectors: Mapping[bytes, Vector]) -> None:
        """Write vectors by the hash of their text; they are on disk when this returns."""
        rows = [(digest, model, len(vector), to_blob(vector)) for digest, vector in vectors.items()]
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.execute(INDEX_BY_HASH)
                self._connection.executemany(INSERT_VECTORS, rows)
                self._connection.execute("COMMIT")
            except BaseException:
                roll_back(self._connection)
                raise

    def forget_unused(self, model: str) -> int:
        """Remove unused vectors, once there are many; return the number removed.

        Vectors of other models are removed only if there are still too many: computing them may have cost money.
        """
        with self._errors():
            (live,) = self._connection.execute("SELECT count(DISTINCT hash) FROM chunks").fetchone()
            limit, gone = max(_FEW, _SPARE * live), 0
            for unused, given in (("hash NOT IN (SELECT hash FROM chunks)", ()), ("model <> ?", (model,))):
                (stored,) = self._connection.execute("SELECT count(*) FROM vectors").fetchone()
                if stored > limit:
                    gone += self._connection.execute(f"DELETE FROM vectors WHERE {unused}", given).rowcount  # noqa: S608
            if gone:
                self._connection.execute(_COUNT_REMOVAL)
            return gone

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise unusable_or_unavailable(error, self.path) from error


class VectorReader:
    """Queries the vectors of one model in an index; with numpy, keeps them in memory and follows the index as it grows.

    In memory a number takes one byte, so 100,000 vectors of 384 dimensions take 40 MB and are compared faster than
    floats; the nearest are compared again at full precision. Without numpy, only given chunks can be compared
    (`cosines`). Safe for several threads, one at a time. Raises the same errors as `IndexReader`.
    """

    def __init__(self, reader: IndexReader, model: str) -> None:
        self.model = model
        self.reader = reader
        self._lock = threading.Lock()
        self._state: tuple[object, ...] = ()
        self._last_id = 0
        self._matrices: dict[int, PackedVectors] = {}
        """The vectors by number of dimensions: a model has a fixed number, but the file may contain others."""

    def count(self) -> int:
        """Return the number of vectors of the model."""
        with self.reader.reading() as connection:
            query = "SELECT count(*) FROM vectors WHERE model = ? AND dims > 0"
            return int(connection.execute(query, (self.model,)).fetchone()[0])

    def count_missing(self) -> int:
        """Return the number of chunks without a vector of the model."""
        query = (
            "SELECT count(*) FROM chunks c LEFT JOIN vectors v ON v.hash = c.hash AND v.model = ? WHERE v.hash IS NULL"
        )
        with self.reader.reading() as connection:
            return int(connection.execute(query, (self.model,)).fetchone()[0])

    def data_version(self) -> int:
        """Return a number that changes whenever the index has been written."""
        return self.reader.data_version()

    def nearest(self, query: Vector, k: int) -> dict[int, float]:
        """Return chunk id → cosine (-1..1) of the k chunks nearest to the query, nearest first. Needs numpy.

        Vectors with another number of dimensions are skipped.
        """
        if not query or k < 1:
            return {}
        with self._lock, self.reader.reading() as connection:
            self._follow(connection)
            packed = self._matrices.get(len(query))
            if packed is None:
                return {}
            ordered = packed.nearest_first(query)
            found: dict[int, float] = {}
            wanted, done = 2 * k, 0
            while len(found) < k and done < packed.count:
                found |= self._cosines_of(connection, query, ordered(done, wanted))
                done, wanted = wanted, wanted * 4  # most of them belong to deleted chunks
        return dict(sorted(found.items(), key=lambda item: -item[1])[:k])

    def cosines(self, query: Vector, chunks: Sequence[int]) -> dict[int, float]:
        """Return chunk id → cosine for these chunks; chunks without a vector of the query's dimensions are left out."""
        found: dict[int, float] = {}
        with self.reader.reading() as connection:
            for part in _parts(list(chunks)):
                sql = f"{_VECTORS} WHERE v.model = ? AND v.dims = ? AND c.id IN ({_marks(part)})"
                for chunk, blob in connection.execute(sql, (self.model, len(query), *part)):
                    found[chunk] = sum(map(mul, query, from_blob(blob)))
        return found if query else {}

    def _cosines_of(self, connection: sqlite3.Connection, query: Vector, ids: list[int]) -> dict[int, float]:
        """Return chunk id → exact cosine for the chunks that have one of these vectors."""
        found: dict[int, float] = {}
        for part in _parts(ids):
            marks = _marks(part)
            blobs = dict(connection.execute(f"SELECT id, vector FROM vectors WHERE id IN ({marks})", part))  # noqa: S608
            cosines = dict(zip(blobs, exact_cosines(query, list(blobs.values())), strict=True))
            chunks = connection.execute(f"{_CHUNKS_OF_VECTORS} ({marks})", part)
            found |= {chunk: cosines[vector] for chunk, vector in chunks}
        return found

    def _follow(self, connection: sqlite3.Connection) -> None:
        """Read the vectors added since the last call, or all of them if some were removed."""
        removed = connection.execute("SELECT value FROM meta WHERE key = 'vectors_removed'").fetchone()
        state = (self.reader.path.stat().st_ino, removed)
        if state != self._state:
            self._state, self._last_id, self._matrices = state, 0, {}
        (newest,) = connection.execute("SELECT max(id) FROM vectors").fetchone()
        fresh = "FROM vectors WHERE model = ? AND id > ? AND dims > 0 AND length(vector) = 4 * dims"
        given = (self.model, self._last_id)
        for dims, count in connection.execute(f"SELECT dims, count(*) {fresh} GROUP BY dims", given).fetchall():
            packed = self._matrices.setdefault(dims, PackedVectors(dims))
            packed.make_room(count)
            rows = connection.execute(f"SELECT id, vector {fresh} AND dims = ? ORDER BY id", (*given, dims))
            while batch := rows.fetchmany(_READ_AT_ONCE):
                packed.add([number for number, _ in batch], [vector for _, vector in batch])
        self._last_id = newest or 0


def to_blob(vector: Vector) -> bytes:
    """Encode a vector for storage: float32, little-endian."""
    if sys.byteorder == "little":
        return vector.tobytes()
    swapped = array("f", vector)
    swapped.byteswap()
    return swapped.tobytes()


def from_blob(blob: bytes) -> Vector:
    """Decode a stored vector."""
    vector = array("f", blob[: len(blob) // 4 * 4])
    if sys.byteorder == "big":
        vector.byteswap()
    return vector


def _parts(values: list[_Value]) -> Iterator[list[_Value]]:
    for start in range(0, len(values), _MARKS_IN_A_QUERY):
        yield values[start : start + _MARKS_IN_A_QUERY]


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
