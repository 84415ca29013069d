"""Searching a code index: chunks by words, definitions by name, uses of names across files (R-230, R-231)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codecompanion.model.code import CodeChunk, Definition, ParsedFile, Reference
from codecompanion.store.code_index import search
from codecompanion.store.code_index.index_writer import IndexedFile, IndexWriter
from codecompanion.store.code_index.reader import IndexReader
from tests.leftovers import closed_at_end

EQUAL = (1.0, 1.0, 1.0)


def a_file(path: str, text: str, defines: tuple[str, ...] = (), uses: tuple[str, ...] = ()) -> IndexedFile:
    definitions = tuple(Definition(name, "function", 1, 2, 1) for name in defines)
    references = tuple(Reference(name, 2) for name in uses)
    symbol = defines[0] if defines else ""
    parsed = ParsedFile("python", definitions, references, is_parsed=True)
    return IndexedFile(path, 1, len(text), b"x" * 32, 2, parsed, [CodeChunk(path, 1, 2, text, symbol)])


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[IndexReader]:
    writer = closed_at_end(IndexWriter(tmp_path / "index.db", tmp_path))
    common = [a_file(f"many/{i}.py", "shared", defines=("run",)) for i in range(search.MAX_DEFINERS + 1)]
    writer.put(
        [
            a_file("core/parser.py", "reads a file word by word", defines=("parse_file",), uses=("run",)),
            a_file("core/user.py", "calls it", uses=("parse_file", "parse_file", "run")),
            a_file("other.py", "a parser of words", defines=("other_thing",)),
            *common,
        ],
        0,
    )
    writer.close()
    reader = closed_at_end(IndexReader(tmp_path / "index.db"))
    yield reader
    reader.close()


def test_chunks_are_found_by_words_of_text_symbol_and_path(reader: IndexReader) -> None:
    """R-231: the columns are weighted."""
    with reader.reading() as connection:
        paths = search.file_paths(connection)
        by_path = search.find_chunks(connection, '"parser"', (50.0, 1.0, 1.0), 10)
        by_text = search.find_chunks(connection, '"parser"', (0.0, 0.0, 1.0), 10)
    assert paths[by_path[0].file] == "core/parser.py"
    assert paths[by_text[0].file] == "other.py"
    assert all(row.bm25 <= 0 for row in by_path)


def test_results_are_limited_in_number_and_to_a_folder(reader: IndexReader) -> None:
    with reader.reading() as connection:
        paths = search.file_paths(connection)
        assert len(search.find_chunks(connection, '"shared"', EQUAL, 2)) == 2
        below = search.find_chunks(connection, '"parser"', EQUAL, 10, "core")
        assert {paths[row.file] for row in below} == {"core/parser.py"}
        assert search.find_chunks(connection, '"parser"', EQUAL, 10, "cor") == []
        assert len(search.find_chunks(connection, '"parser"', EQUAL, 10, "other.py")) == 1


def test_chunks_by_id_by_place_and_the_first_one(reader: IndexReader) -> None:
    with reader.reading() as connection:
        (row,) = search.find_chunks(connection, '"reads"', EQUAL, 1)
        assert search.chunks_by_id(connection, [row.chunk, 9999]) == [search.ChunkRow(*_without_score(row))]
        assert search.first_chunk(connection, row.file) == search.chunk_at(connection, row.file, 2)
        assert search.chunk_at(connection, row.file, 50) is None
        assert search.first_chunk(connection, 9999) is None


def _without_score(row: search.ChunkRow) -> tuple[int, int, int, int, str, str, float]:
    return row.chunk, row.file, row.start, row.end, row.symbol, row.kind, 0.0


def test_definitions_are_found_by_their_exact_name(reader: IndexReader) -> None:
    with reader.reading() as connection:
        paths = search.file_paths(connection)
        assert [paths[row.file] for row in search.find_definitions(connection, ["parse_file"])] == ["core/parser.py"]
        assert search.find_definitions(connection, ["Parse_File", "parse"]) == []
        assert len(search.find_definitions(connection, ["run"], limit=3)) == 3


def test_the_graph_ignores_names_with_many_definitions(reader: IndexReader) -> None:
    """`run` is defined in too many files to be attributed, so it yields no edge."""
    graph = search.ReferenceGraph()
    with reader.reading() as connection:
        ids = {path: file for file, path in search.file_paths(connection).items()}
        user, parser = ids["core/user.py"], ids["core/parser.py"]
        assert set(graph.edges_of(connection, [user])) == {(user, parser)}
        assert set(graph.edges_of(connection, [parser])) == {(user, parser)}
        assert graph.edges_of(connection, [ids["other.py"]]) == {}


def test_the_graph_is_cached_until_it_is_invalidated(reader: IndexReader, tmp_path: Path) -> None:
    graph = search.ReferenceGraph()
    with reader.reading() as connection:
        ids = {path: file for file, path in search.file_paths(connection).items()}
        before = search.data_version(connection)
        edges = dict(graph.edges_of(connection, [ids["core/parser.py"]]))
    writer = closed_at_end(IndexWriter(tmp_path / "index.db", tmp_path))
    writer.put([a_file("core/user.py", "no more", uses=())], 1)
    writer.close()
    with reader.reading() as connection:
        assert search.data_version(connection) != before
        assert graph.edges_of(connection, [ids["core/parser.py"]]) == edges
        graph.clear()
        assert graph.edges_of(connection, [ids["core/parser.py"]]) == {}


@pytest.mark.parametrize(("name", "more_than"), [("parse_file", "parse"), ("parseFile", "parse"), ("Parser", "run")])
def test_names_of_several_words_are_more_specific(name: str, more_than: str) -> None:
    assert search.strength(name, 1) >= search.strength(more_than, 1)
    assert search.strength("ab", 9) == 0
    assert search.strength(name, 4) == 2 * search.strength(name, 1)
