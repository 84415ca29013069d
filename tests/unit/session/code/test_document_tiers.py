"""The number of chunks that each tier of the document reads and returns, over a real index (R-234)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from codecompanion.model.found_code import SearchTier
from codecompanion.retrieval.search.full_text_query import text_score
from codecompanion.session.code import document_tiers
from codecompanion.session.code.indexing import build
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_code import search_code
from codecompanion.session.code.search_options import NearestChunks, SearchOptions
from codecompanion.store.code_index.search import ChunkRow

FILES = 40


class Cosines:
    """Vectors of every chunk, closer for smaller ids; notes how many were requested."""

    def __init__(self) -> None:
        self.asked = list[int]()

    async def nearest(self, index: ProjectIndex, question: str) -> NearestChunks:
        with index.reader.reading() as connection:
            chunks = [row[0] for row in connection.execute("SELECT id FROM chunks ORDER BY id")]

        def ask(limit: int) -> Mapping[int, float]:
            self.asked.append(limit)
            return {chunk: 1 / (2 + place) for place, chunk in enumerate(chunks[:limit])}

        return ask


@pytest.fixture
def index(tmp_path: Path) -> ProjectIndex:
    for number in range(FILES):
        path = tmp_path / "project" / f"part{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"def part{number}():\n    return '{'voucher ' * (number + 1)}'\n", encoding="utf-8")
    index = ProjectIndex(tmp_path / "project", tmp_path / "cache")
    build(index.root, index.path, index.choice, now_ns=time.time_ns)
    return index


@pytest.mark.parametrize(("top_k", "given"), [(1, 1), (7, 7), (15, 15)])
async def test_keyword_search_fetches_twice_as_many_and_ignores_vectors(
    index: ProjectIndex, monkeypatch: pytest.MonkeyPatch, top_k: int, given: int
) -> None:
    """R-234: topK × 2, weights 0 and 1; vectors exist but are not queried."""
    fetched = list[tuple[int, Sequence[ChunkRow]]]()

    def find_chunks(connection: object, match: str, columns: object, limit: int, below: str = "") -> list[ChunkRow]:
        rows = original(connection, match, columns, limit, below)  # type: ignore[arg-type]
        fetched.append((limit, rows))
        return rows

    original = document_tiers.find_chunks
    monkeypatch.setattr(document_tiers, "find_chunks", find_chunks)
    vectors = Cosines()
    outcome = await search_code(index, "voucher", SearchOptions(tier="fts", top_k=top_k), vectors)
    assert outcome.tier == "fts"
    [(limit, rows)] = fetched
    assert (limit, len(rows), vectors.asked) == (top_k * 2, top_k * 2, [])
    assert len(outcome.results) == given
    assert [one.score for one in outcome.results] == pytest.approx([text_score(row.bm25) for row in rows[:given]])
    await index.close()


@pytest.mark.parametrize("tier", ["vector", "terms"])
@pytest.mark.parametrize(("top_k", "given"), [(3, 3), (10, 5), (50, 5)])
async def test_cosines_and_counted_terms_return_five_results(
    index: ProjectIndex, tier: SearchTier, top_k: int, given: int
) -> None:
    """R-234: fewer results are returned when fewer are wanted (R-228)."""
    vectors = Cosines()
    outcome = await search_code(index, "voucher", SearchOptions(tier=tier, top_k=top_k), vectors)
    assert outcome.tier == tier
    assert len(outcome.results) == given
    assert vectors.asked == ([given] if tier == "vector" else [])
    await index.close()
