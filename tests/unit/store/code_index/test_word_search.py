"""Searching chunks by any of some words: the same result as scoring all, without scoring all (R-231)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from codecompanion.model.code import CodeChunk, ParsedFile
from codecompanion.store.code_index import word_search
from codecompanion.store.code_index.index_writer import IndexedFile, IndexWriter
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.store.code_index.search import ChunkRow, find_chunks
from codecompanion.store.code_index.word_search import WordCounts, find_any
from tests.leftovers import closed_at_end

COLUMNS = (1.0, 3.0, 1.0)
LIMIT = 20
NEARLY_NOTHING = 1e-4
COMMON = ("alpha", "bravo", "charlie")
MODERATE = ("delta", "echo", "foxtrot", "golf")
RARE = ("hotel", "india", "juliet", "kilo", "lima")
SHARES = dict.fromkeys(COMMON, 0.6) | dict.fromkeys(MODERATE, 0.3) | dict.fromkeys(RARE, 0.06)


def a_file(number: int, text: str) -> IndexedFile:
    path = f"files/{number}.py"
    return IndexedFile(path, 1, len(text), b"x" * 32, 1, ParsedFile("python", (), ()), [CodeChunk(path, 1, 1, text)])


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of 600 chunks, in which words are as common as in code."""
    folder, chosen = tmp_path_factory.mktemp("index"), random.Random(7)
    texts = []
    for _ in range(600):
        words = [word for word, share in SHARES.items() if chosen.random() < share] + ["filler"]
        chosen.shuffle(words)
        texts.append(" ".join(word for word in words for _ in range(chosen.choice((1, 1, 2)))))
    writer = IndexWriter(folder / "index.db", folder)
    writer.put([a_file(number, text) for number, text in enumerate(texts)], 0)
    writer.close()
    return folder / "index.db"


@pytest.fixture
def reader(index: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexReader]:
    """Return a reader of the index; the threshold for scoring everything is as low as for a large one."""
    monkeypatch.setattr(word_search, "FEW_CHUNKS", 50)
    reader = closed_at_end(IndexReader(index))
    yield reader
    reader.close()


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the full-text queries that are run."""
    run = list[str]()

    def noted(connection: object, match: str, *options: object) -> list[ChunkRow]:
        run.append(match)
        return find_chunks(connection, match, *options)  # type: ignore[arg-type]

    monkeypatch.setattr(word_search, "find_chunks", noted)
    return run


def ask(reader: IndexReader, *words: str, pairs: tuple[str, ...] = ()) -> list[ChunkRow]:
    with reader.reading() as connection:
        return find_any(connection, WordCounts(), words, pairs, COLUMNS, LIMIT)


def score_all(reader: IndexReader, *phrases: str) -> list[ChunkRow]:
    with reader.reading() as connection:
        return find_chunks(connection, " OR ".join(f'"{one}"' for one in phrases), COLUMNS, LIMIT)


@pytest.mark.parametrize("guessed_last_score", [word_search._LAST_SCORE, 8.0, 100.0])
def test_the_best_chunks_equal_those_of_a_full_scoring(
    reader: IndexReader, queries: list[str], monkeypatch: pytest.MonkeyPatch, guessed_last_score: float
) -> None:
    """Work that is skipped never changes the result, however wrong the estimate."""
    monkeypatch.setattr(word_search, "_LAST_SCORE", guessed_last_score)
    chosen = random.Random(3)
    for _ in range(150):
        words = chosen.sample([*COMMON, *MODERATE, *RARE, "missing"], chosen.randint(1, 8))
        pairs = tuple(" ".join(pair) for pair in pairwise(words))
        found, every = ask(reader, *words, pairs=pairs), score_all(reader, *words, *pairs)
        scores, expected = [row.bm25 for row in found], [row.bm25 for row in every]
        if found and -scores[0] > NEARLY_NOTHING:  # otherwise there are common words only
            expected = [score for score in expected if -score > NEARLY_NOTHING]
        assert scores == pytest.approx(expected, abs=NEARLY_NOTHING), words
    assert any(" NOT " in query for query in queries), "no question was asked without scoring all"


def test_chunks_of_common_words_alone_are_not_scored(reader: IndexReader, queries: list[str]) -> None:
    ask(reader, "alpha", "hotel", "india")
    assert queries == ['"hotel" OR "india"']


def test_a_moderate_word_counts_beside_a_rare_one(reader: IndexReader, queries: list[str]) -> None:
    found = ask(reader, "delta", "hotel", "india")
    assert queries == ['("hotel" OR "india") AND ("delta")', '("hotel" OR "india") NOT ("delta")']
    assert [row.chunk for row in found] == [row.chunk for row in score_all(reader, "delta", "hotel", "india")]


def test_common_words_are_searched_if_there_is_nothing_else(reader: IndexReader) -> None:
    assert len(ask(reader, "alpha", "bravo")) == LIMIT
    assert len(ask(reader, "alpha", "missing")) == LIMIT


def test_everything_is_scored_if_common_words_could_change_the_result(
    reader: IndexReader, queries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search, "_LAST_SCORE", 100.0)
    found = ask(reader, "delta", "echo", "foxtrot", "golf", "hotel")
    assert len(queries) == 3
    assert " AND " not in queries[-1]
    every = score_all(reader, "delta", "echo", "foxtrot", "golf", "hotel")
    assert [row.bm25 for row in found] == [row.bm25 for row in every]


def test_a_small_result_is_scored_at_once(reader: IndexReader, queries: list[str]) -> None:
    ask(reader, "hotel")
    assert queries == ['"hotel"']


def test_missing_word_pairs_are_not_searched(reader: IndexReader, queries: list[str]) -> None:
    assert ask(reader, "missing", pairs=("missing alpha",)) == []
    ask(reader, "hotel", "missing", "alpha", pairs=("hotel missing", "missing alpha", "hotel alpha"))
    assert queries == ['"hotel" OR "hotel alpha"']


def test_pairs_of_very_common_words_are_limited(
    reader: IndexReader, queries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pair of the rarest words comes first, and at least one pair is always searched."""
    monkeypatch.setattr(word_search, "PAIR_POSTINGS", 500)
    ask(reader, "alpha", "bravo", "hotel", pairs=("alpha bravo", "bravo hotel"))
    assert queries == ['"hotel" OR "bravo hotel"']
    ask(reader, "alpha", "bravo", pairs=("alpha bravo",))
    assert queries[1] == '"alpha bravo"'


def test_below_a_folder_every_chunk_is_checked(reader: IndexReader, queries: list[str]) -> None:
    with reader.reading() as connection:
        found = find_any(connection, WordCounts(), ("alpha", "delta", "hotel"), (), COLUMNS, LIMIT, "files/7.py")
    assert len(found) == 1
    assert queries == ['"alpha" OR "delta" OR "hotel"']


def test_words_are_counted_once_until_the_index_changes(tmp_path: Path) -> None:
    counts, writer = WordCounts(), closed_at_end(IndexWriter(tmp_path / "index.db", tmp_path))
    writer.put([a_file(1, "alpha bravo")], 0)
    reader, statements = closed_at_end(IndexReader(tmp_path / "index.db")), list[str]()
    with reader.reading() as connection:
        connection.set_trace_callback(statements.append)
        assert [counts.chunks_with(connection, "alpha") for _ in range(3)] == [1, 1, 1]
        assert [counts.chunks(connection) for _ in range(3)] == [1, 1, 1]
        assert sum("count(*)" in one for one in statements) == 2
        connection.set_trace_callback(None)
    writer.put([a_file(2, "alpha")], 0)
    counts.clear()
    with reader.reading() as connection:
        assert (counts.chunks_with(connection, "alpha"), counts.chunks(connection)) == (2, 2)
    reader.close()
    writer.close()
