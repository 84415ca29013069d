"""Comparing a question with the vectors of an index, and reasons for not doing so (R-227, R-232, R-239)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from codecompanion.errors import NetworkFailed
from codecompanion.model.embedding import Vector
from codecompanion.retrieval.search.cascade import TierUnavailable
from codecompanion.session.vectors import question_vector as question
from codecompanion.session.vectors.question_vector import QuestionVectors
from codecompanion.session.vectors.run import make_vectors
from codecompanion.store.code_index.reader import IndexReader
from tests.leftovers import closed_at_end
from tests.unit.session.vectors.test_run import HashedWords, Project


class Index:
    """The part of an index that a search uses."""

    def __init__(self, path: Path) -> None:
        self.reader = closed_at_end(IndexReader(path))


@pytest.fixture
async def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.put("a.py", "load file", "paint window")
    project.put("b.py", "save file", "send mail")
    await make_vectors(project.path, HashedWords(), project.read)
    return project


Make = Callable[..., QuestionVectors]


@pytest.fixture
async def ask_with() -> AsyncIterator[Make]:
    """Return a maker of question comparers, closed after the test."""
    made: list[QuestionVectors] = []

    def make(embedder: HashedWords, **more: float) -> QuestionVectors:
        made.append(QuestionVectors(embedder, **more))
        return made[-1]

    yield make
    for one in made:
        await one.aclose()


def places(project: Project, found: dict[int, float] | object) -> list[str]:
    assert isinstance(found, dict)
    with closed_at_end(IndexReader(project.path)).reading() as connection:
        query = "SELECT c.id, f.path || ':' || c.start FROM chunks c JOIN files f ON f.id = c.file_id"
        names = dict(connection.execute(query))
    return [names[chunk] for chunk in found]


async def test_the_nearest_chunks_come_first(project: Project, ask_with: Make) -> None:
    pytest.importorskip("numpy")
    vectors = ask_with(HashedWords())
    nearest = await vectors.nearest(Index(project.path), "fetch file")
    found = nearest(2)
    assert places(project, found)[0] == "a.py:1"
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert len(found) == 2


async def test_without_numpy_the_chunks_found_by_words_are_compared(
    project: Project, ask_with: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "find_spec", lambda name: None)
    vectors = ask_with(HashedWords())
    nearest = await vectors.nearest(Index(project.path), "send mail")
    assert places(project, nearest(9)) == ["b.py:2"]
    found = (await vectors.nearest(Index(project.path), "the file"))(9)
    assert sorted(places(project, found)) == ["a.py:1", "b.py:1"]
    assert places(project, (await vectors.nearest(Index(project.path), "?!"))(9)) == []


async def test_a_question_is_embedded_once(project: Project, ask_with: Make) -> None:
    embedder = HashedWords()
    vectors = ask_with(embedder)
    for _ in range(3):
        await vectors.nearest(Index(project.path), "where is mail sent")
    assert embedder.texts == ["where is mail sent"]
    await vectors.nearest(Index(project.path), "x" * 9_999)
    assert len(embedder.texts[-1]) == 4_096


class Slow(HashedWords):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await asyncio.Event().wait()
        return []


class Broken(HashedWords):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise NetworkFailed("embeddings: no connection to http://127.0.0.1:9.")


async def test_any_problem_is_one_sentence_and_words_are_used(project: Project, ask_with: Make, tmp_path: Path) -> None:
    index = Index(project.path)
    cases = [
        (ask_with(Broken()), index, "no connection to"),
        (ask_with(Slow(), limit_s=0.01), index, r"no vector for the question within 0\.01 s"),
        (ask_with(HashedWords()), Index(tmp_path / "none.db"), "not indexed yet"),
        (ask_with(Other()), index, "no vectors from this model yet"),
    ]
    for vectors, one, said in cases:
        nearest = await vectors.nearest(one, "where is mail sent")
        with pytest.raises(TierUnavailable, match=said):
            nearest(5)


async def test_a_blank_question_has_no_vector(project: Project, ask_with: Make) -> None:
    class Blank(HashedWords):
        async def embed_query(self, text: str) -> Vector:
            return (await self.embed([""]))[0]

    nearest = await ask_with(Blank()).nearest(Index(project.path), " ")
    with pytest.raises(TierUnavailable, match="no vector"):
        nearest(5)


class Other(HashedWords):
    """Another model: its vectors do not match the index, so it is not asked."""

    name = "other"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise AssertionError("there is nothing to compare with")
