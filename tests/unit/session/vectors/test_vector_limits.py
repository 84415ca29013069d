"""Limits of computing and using vectors (R-239)."""

from __future__ import annotations

import pytest

from codecompanion.session.vectors.estimate import Estimate
from codecompanion.session.vectors.question_vector import QuestionVectors
from codecompanion.session.vectors.run import make_vectors
from codecompanion.store.code_index import vectors
from codecompanion.store.code_index.reader import IndexReader
from tests.leftovers import closed_at_end
from tests.unit.session.vectors import test_run
from tests.unit.session.vectors.test_run import HashedWords, Project

project = test_run.project


@pytest.mark.parametrize(
    ("tokens", "usd", "is_large"),
    [(2_000_000, None, False), (2_000_001, None, True), (10**9, 0.10, False), (1, 0.11, True)],
)
def test_a_run_over_a_certain_price_is_announced(tokens: int, usd: float | None, is_large: bool) -> None:
    """From two million tokens if no price is known, else from ten cents; as documented in the help."""
    assert Estimate(1, tokens, usd, is_paid=True).is_large is is_large


async def test_a_run_deletes_vectors_of_removed_texts(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_FEW", 0)
    monkeypatch.setattr(vectors, "_SPARE", 1.0)
    await make_vectors(project.path, HashedWords(), project.read)
    project.put("src/0.py", "def new(): one", "def newer(): two")
    await make_vectors(project.path, HashedWords(), project.read)
    assert project.vectors() == 12


async def test_a_question_is_embedded_once_even_with_others_in_between(project: Project) -> None:
    embedder = HashedWords()
    await make_vectors(project.path, embedder, project.read)
    project.reader = closed_at_end(IndexReader(project.path))  # type: ignore[attr-defined]
    made, questions = len(embedder.texts), QuestionVectors(embedder)
    for text in ("one", "two", "one", "three", "two"):
        await questions.nearest(project, text)  # type: ignore[arg-type]
    assert embedder.texts[made:] == ["one", "two", "three"]
    await questions.aclose()
