"""Vectors in the index: kept by text, found by cosine, never in the way (R-232, R-239)."""

from __future__ import annotations

import random
import sqlite3
from array import array
from collections.abc import Sequence
from operator import mul
from pathlib import Path

import pytest

from codecompanion.model.code import CodeChunk, ParsedFile
from codecompanion.model.embedding import Vector, unit_vector
from codecompanion.store.code_index.index_tables import FORMAT, index_path, remove_index
from codecompanion.store.code_index.index_writer import IndexedFile, IndexWriter, chunk_hash
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.store.code_index.vectors import VectorReader, VectorWriter, from_blob, to_blob
from tests.leftovers import closed_at_end

ROOT = Path("/project")
MODEL = "model-a"


def indexed(path: str, *texts: str) -> IndexedFile:
    """Return a file in which each text is a one-line chunk."""
    chunks = [CodeChunk(path, row, row, text) for row, text in enumerate(texts, 1)]
    return IndexedFile(path, 1, sum(map(len, texts)), b"x" * 32, len(texts), ParsedFile(), chunks)


def vectors_of(**numbers: Sequence[float]) -> dict[bytes, Vector]:
    """Return vectors by the hash of their texts."""
    return {chunk_hash(text): unit_vector(vector) for text, vector in numbers.items()}


def texts_of(path: Path, found: dict[int, float]) -> list[str]:
    """Return `file:line` of the found chunks, in order."""
    with closed_at_end(IndexReader(path)).reading() as connection:
        query = "SELECT c.id, f.path || ':' || c.start FROM chunks c JOIN files f ON f.id = c.file_id"
        names = dict(connection.execute(query))
    return [names[chunk] for chunk in found]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return index_path(tmp_path, ROOT)


@pytest.fixture
def index(path: Path) -> IndexWriter:
    writer = closed_at_end(IndexWriter(path, ROOT))
    writer.put([indexed("a.py", "one", "two"), indexed("b.py", "three", "one")], now=1)
    return writer


def test_an_interrupted_run_knows_the_missing_texts(index: IndexWriter, path: Path) -> None:
    writer = closed_at_end(VectorWriter(path))
    assert [(one.path, one.chunks, one.all_chunks) for one in writer.missing(MODEL)] == [("a.py", 2, 2), ("b.py", 2, 2)]
    writer.put(MODEL, vectors_of(one=[1, 0], two=[0, 1]))
    assert [(one.path, one.chunks, one.all_chunks) for one in writer.missing(MODEL)] == [("b.py", 1, 2)]
    assert writer.known(MODEL, map(chunk_hash, ("one", "three", "never"))) == {chunk_hash("one")}
    writer.put(MODEL, vectors_of(three=[]))
    assert writer.missing(MODEL) == [], "an empty vector says that there is none to be had"
    assert len(writer.missing("model-b")) == 2
    writer.close()


def test_identical_texts_share_one_vector_and_all_places_are_found(index: IndexWriter, path: Path) -> None:
    pytest.importorskip("numpy")
    writer, reader = closed_at_end(VectorWriter(path)), VectorReader(closed_at_end(IndexReader(path)), MODEL)
    assert reader.nearest(unit_vector([1, 0]), 5) == {}
    writer.put(MODEL, vectors_of(one=[1, 0], two=[1, 1], three=[0, 1]))
    found = reader.nearest(unit_vector([1, 0.1]), 5)
    assert texts_of(path, found) == ["a.py:1", "b.py:2", "a.py:2", "b.py:1"]
    assert next(iter(found.values())) == pytest.approx(0.995, abs=1e-3)
    assert texts_of(path, reader.nearest(unit_vector([0, 1]), 1)) == ["b.py:1"]
    assert reader.count() == 3
    assert closed_at_end(IndexReader(path)).counts().vectors == 3


def test_vectors_outlive_their_chunks_and_are_reused(index: IndexWriter, path: Path) -> None:
    """Switching to another branch and back costs nothing; meanwhile, removed chunks are not found."""
    pytest.importorskip("numpy")
    writer, reader = closed_at_end(VectorWriter(path)), VectorReader(closed_at_end(IndexReader(path)), MODEL)
    writer.put(MODEL, vectors_of(one=[1, 0], two=[1, 0.2], three=[0, 1]))
    index.remove(["a.py", "b.py"])
    assert reader.nearest(unit_vector([1, 0]), 2) == {}
    index.put([indexed("moved.py", "two")], now=2)
    assert writer.missing(MODEL) == []
    assert texts_of(path, reader.nearest(unit_vector([1, 0]), 2)) == ["moved.py:1"]


def test_vectors_of_a_wrong_size_are_skipped(index: IndexWriter, path: Path) -> None:
    """R-232: another number of dimensions and empty vectors are skipped; an empty query finds nothing."""
    pytest.importorskip("numpy")
    writer, reader = closed_at_end(VectorWriter(path)), VectorReader(closed_at_end(IndexReader(path)), MODEL)
    writer.put(MODEL, vectors_of(one=[1, 0, 0], two=[1, 0], three=[]))
    writer.put("model-b", vectors_of(three=[1, 0]))
    assert texts_of(path, reader.nearest(unit_vector([1, 0]), 9)) == ["a.py:2"]
    assert reader.nearest(unit_vector([]), 9) == {}
    assert reader.nearest(unit_vector([0, 0]), 9) == {}
    assert reader.nearest(unit_vector([1, 0]), 0) == {}
    assert reader.nearest(unit_vector([1, 0, 0, 0]), 9) == {}


def test_a_rebuilt_index_is_read_again(index: IndexWriter, path: Path) -> None:
    pytest.importorskip("numpy")
    writer, reader = closed_at_end(VectorWriter(path)), VectorReader(closed_at_end(IndexReader(path)), MODEL)
    writer.put(MODEL, vectors_of(one=[1, 0], two=[0, 1], three=[0, 1]))
    assert len(reader.nearest(unit_vector([1, 0]), 1)) == 1
    writer.close()
    index.close()
    remove_index(path)
    again = closed_at_end(IndexWriter(path, ROOT))
    again.put([indexed("c.py", "four")], now=1)
    fresh = closed_at_end(VectorWriter(path))
    fresh.put(MODEL, vectors_of(four=[1, 0]))
    assert texts_of(path, reader.nearest(unit_vector([1, 0]), 1)) == ["c.py:1"]


def test_the_nearest_of_many_equal_those_of_an_exact_comparison(index: IndexWriter, path: Path) -> None:
    """One byte per number in memory changes no cosine, and the order only for nearly equal ones."""
    pytest.importorskip("numpy")
    chance = random.Random(5)
    texts = [f"text{number}" for number in range(1_500)]
    index.put([indexed("many.py", *texts)], now=1)
    made = {text: unit_vector([chance.gauss(0, 1) for _ in range(48)]) for text in texts}
    writer = closed_at_end(VectorWriter(path))
    writer.put(MODEL, {chunk_hash(text): vector for text, vector in made.items()})
    reader = VectorReader(closed_at_end(IndexReader(path)), MODEL)
    for _ in range(5):
        query = unit_vector([chance.gauss(0, 1) for _ in range(48)])
        exact = {text: sum(map(mul, query, vector)) for text, vector in made.items()}
        wanted = sorted(exact, key=exact.__getitem__, reverse=True)[:60]
        found = reader.nearest(query, 60)
        lines = {f"many.py:{row}": text for row, text in enumerate(texts, 1)}
        assert [lines[one] for one in texts_of(path, found)] == wanted
        assert list(found.values()) == pytest.approx([exact[text] for text in wanted], abs=1e-6)


def test_without_numpy_named_chunks_are_compared(index: IndexWriter, path: Path) -> None:
    """R-239: plain Python compares only the chunks that the words found, with the same figures as numpy."""
    writer, reader = closed_at_end(VectorWriter(path)), VectorReader(closed_at_end(IndexReader(path)), MODEL)
    writer.put(MODEL, vectors_of(one=[3, 4], two=[0, 1], three=[1, 0, 0]))
    with closed_at_end(IndexReader(path)).reading() as connection:
        chunks = [row[0] for row in connection.execute("SELECT id FROM chunks ORDER BY id")]
    found = reader.cosines(unit_vector([0, 1]), chunks)
    assert [found[chunk] for chunk in chunks if chunk in found] == pytest.approx([0.8, 1.0, 0.8])
    assert reader.cosines(unit_vector([]), chunks) == {}
    pytest.importorskip("numpy")
    assert reader.nearest(unit_vector([0, 1]), 9) == pytest.approx(found)


def test_unused_vectors_are_deleted_once_there_are_many(
    index: IndexWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numpy")
    monkeypatch.setattr("codecompanion.store.code_index.vectors._FEW", 4)
    writer, reader = closed_at_end(VectorWriter(path)), VectorReader(closed_at_end(IndexReader(path)), MODEL)
    writer.put(MODEL, vectors_of(one=[1, 0], two=[0, 1], three=[1, 1]))
    assert writer.forget_unused(MODEL) == 0
    writer.put("model-b", vectors_of(one=[1, 0], two=[0, 1], three=[1, 1]))
    writer.put(MODEL, vectors_of(**{f"gone{number}": [1, number] for number in range(9)}))
    assert reader.count() == 12
    assert len(reader.nearest(unit_vector([1, 0]), 9)) == 4
    assert writer.forget_unused(MODEL) == 9
    assert VectorReader(closed_at_end(IndexReader(path)), "model-b").count() == 3, "another model's are not in the way"
    assert reader.count() == 3
    assert len(reader.nearest(unit_vector([1, 0]), 9)) == 4


def test_many_vectors_yield_the_same_as_single_comparisons(path: Path) -> None:
    pytest.importorskip("numpy")
    rng = random.Random(7)
    texts = [f"text{number}" for number in range(800)]
    index = closed_at_end(IndexWriter(path, ROOT))
    index.put([indexed(f"{start}.py", *texts[start : start + 100]) for start in range(0, 800, 100)], now=1)
    writer, reader = closed_at_end(VectorWriter(path)), VectorReader(closed_at_end(IndexReader(path)), MODEL)
    vectors = {text: unit_vector([rng.gauss(0, 1) for _ in range(16)]) for text in texts}
    for start in range(0, 800, 300):  # it grows while it is read
        writer.put(MODEL, {chunk_hash(text): vectors[text] for text in texts[start : start + 300]})
        reader.nearest(unit_vector([1.0] * 16), 1)
    query = unit_vector([rng.gauss(0, 1) for _ in range(16)])
    exact = sorted(-sum(a * b for a, b in zip(query, vector, strict=True)) for vector in vectors.values())[:20]
    assert list(reader.nearest(query, 20).values()) == pytest.approx([-score for score in exact], abs=1e-5)


def test_a_stored_vector_is_float32_in_little_endian() -> None:
    assert to_blob(array("f", [1.0, -2.0])).hex() == "0000803f000000c0"
    assert list(from_blob(bytes.fromhex("0000803f000000c0"))) == [1.0, -2.0]
    assert list(from_blob(b"\0\0\x80\x3f\0")) == [1.0], "a damaged end is left out"


def test_a_replaced_index_keeps_its_vectors(index: IndexWriter, path: Path) -> None:
    """Vectors may have cost money: they survive the replacement of a damaged file, or of one in another format."""
    writer = closed_at_end(VectorWriter(path))
    writer.put(MODEL, vectors_of(one=[1, 0], two=[0, 1]))
    writer.close()
    index.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE chunk_text")
    connection.close()
    again = closed_at_end(IndexWriter(path, ROOT))
    reader = closed_at_end(IndexReader(path))
    assert reader.counts().chunks == 0
    assert VectorReader(reader, MODEL).count() == 2
    reader.close()
    again.close()
    older = path.with_name(path.name.replace(f".{FORMAT}.db", f".{FORMAT - 1}.db"))
    path.rename(older)
    IndexWriter(path, ROOT).close()
    assert VectorReader(closed_at_end(IndexReader(path)), MODEL).count() == 2
    assert older.exists()


def test_a_useless_file_is_replaced_completely(index: IndexWriter, path: Path) -> None:
    index.close()
    remove_index(path)
    path.write_bytes(b"not a database" * 99)
    IndexWriter(path, ROOT).close()
    assert VectorReader(closed_at_end(IndexReader(path)), MODEL).count() == 0
    assert [one.name for one in path.parent.iterdir() if "damaged" in one.name] == []
