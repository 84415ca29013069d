"""A local all-MiniLM-L6-v2 returns the vectors published by its makers and finds matches that words do not (R-239)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from codecompanion.adapters.embeddings.onnx_embedder import OnnxEmbedder
from codecompanion.model.embedding import EmbeddingSettings


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


@pytest.fixture
def embedder(minilm: Path) -> OnnxEmbedder:
    return OnnxEmbedder(EmbeddingSettings(onnx=str(minilm)), threads=1)


async def test_it_agrees_with_its_makers_example(embedder: OnnxEmbedder) -> None:
    """The sbert.net quickstart gives 0.6660 and 0.1046 for these texts with all-MiniLM-L6-v2 (float32, unlike here)."""
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    weather, sunny, stadium = await embedder.embed(texts)
    assert len(weather) == 384
    assert cosine(weather, weather) == pytest.approx(1, abs=1e-5)
    assert cosine(weather, sunny) == pytest.approx(0.6660, abs=0.03)
    assert cosine(weather, stadium) == pytest.approx(0.1046, abs=0.03)


async def test_a_question_finds_code_that_shares_no_word_with_it(embedder: OnnxEmbedder) -> None:
    code = [
        "def sign_in(username, password):\n    return session.authenticate(username, password)",
        "def render_table(rows):\n    return '\\n'.join(' | '.join(row) for row in rows)",
        "class RetryPolicy:\n    backoff = 0.5\n    max_attempts = 3",
    ]
    vectors = await embedder.embed(code)
    for question, wanted in (
        ("where do users log on", 0),
        ("how is the grid printed", 1),
        ("what happens when the network call fails and is repeated", 2),
    ):
        asked = await embedder.embed_query(question)
        scores = [cosine(asked, vector) for vector in vectors]
        assert scores.index(max(scores)) == wanted, (question, scores)


async def test_padding_changes_nothing(embedder: OnnxEmbedder) -> None:
    alone = (await embedder.embed(["def f(): pass"]))[0]
    among = (await embedder.embed(["def f(): pass", "word " * 300, "x"]))[0]
    assert cosine(alone, among) == pytest.approx(1, abs=1e-4)
