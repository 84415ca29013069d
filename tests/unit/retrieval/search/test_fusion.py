"""Joining keyword search and vector search (R-228, R-229, R-233)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.retrieval.search.fusion import (
    Candidate,
    HybridOptions,
    decay,
    diversify,
    effective_top_k,
    effective_weights,
    fetched_from_each_side,
    fuse,
    jaccard,
)

DAY = 86_400.0


def found(chunk: int, score: float, text: str = "", indexed_at: float | None = None) -> Candidate:
    return Candidate(chunk, f"{chunk}.py", 1, 2, score, text, indexed_at=indexed_at)


@pytest.mark.parametrize(
    ("vector", "text", "expected"),
    [
        (0.7, 0.3, (0.7, 0.3)),
        (1, 1, (0.5, 0.5)),
        (0, 0, (0.5, 0.5)),
        (0, 1, (0, 1)),
        (5, 0.25, (0.8, 0.2)),
        (-3, 0.4, (0, 1)),
        (-1, -1, (0.5, 0.5)),
    ],
)
def test_weights_are_clamped_and_sum_to_one(vector: float, text: float, expected: tuple[float, float]) -> None:
    """R-228."""
    assert effective_weights(vector, text) == pytest.approx(expected)


@pytest.mark.parametrize(("asked", "k", "each"), [(10, 10, 20), (0, 1, 20), (-5, 1, 20), (30, 30, 30), (99, 50, 50)])
def test_the_numbers_fetched_and_returned_are_limited(asked: int, k: int, each: int) -> None:
    """R-228, R-229."""
    assert (effective_top_k(asked), fetched_from_each_side(asked)) == (k, each)


def test_a_missing_side_counts_zero() -> None:
    """R-228: score = wv × vector + wt × text."""
    ranked = fuse([found(1, 1.0), found(2, 0.5)], [found(2, 0.9), found(3, 1.0)], HybridOptions(), 0)
    assert [each.chunk for each in ranked] == [1, 2, 3]
    assert [each.score for each in ranked] == pytest.approx([0.7, 0.7 * 0.5 + 0.3 * 0.9, 0.3])


def test_the_keyword_sides_text_takes_precedence() -> None:
    """R-229."""
    both = fuse([found(1, 1, "vector"), found(2, 1, "vector")], [found(1, 1, "words"), found(2, 1)], HybridOptions(), 0)
    assert [each.text for each in both] == ["words", "vector"]


def test_at_most_top_k_are_returned() -> None:
    """R-229."""
    many = [found(i, 1 - i / 100) for i in range(40)]
    assert [each.chunk for each in fuse(many, [], HybridOptions(top_k=3), 0)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("age", "half_life", "expected"),
    [(30, 30, 0.5), (60, 30, 0.25), (0, 30, 1), (1, 0, 0.5), (365, 9999, 0.5), (-10, 30, 1)],
)
def test_scores_halve_with_each_half_life(age: float, half_life: float, expected: float) -> None:
    """R-233: the half-life is 1..365 days."""
    assert decay(1, age, half_life) == pytest.approx(expected)
    assert decay(0.8, 10) == pytest.approx(0.8 * math.exp(-math.log(2) / 30 * 10))


def test_decay_is_off_by_default_and_ignores_undated_chunks() -> None:
    """R-233."""
    old, undated = found(1, 1.0, indexed_at=0), found(2, 0.9)
    assert [each.chunk for each in fuse([old, undated], [], HybridOptions(), 90 * DAY)] == [1, 2]
    decayed = fuse([old, undated], [], HybridOptions(decay=True), 90 * DAY)
    assert [(each.chunk, each.score) for each in decayed] == [(2, pytest.approx(0.63)), (1, pytest.approx(0.0875))]


def test_different_texts_move_up() -> None:
    """R-233: the method is maximal marginal relevance with the Jaccard index of words."""
    ranked = [found(1, 1.0, "a b c d"), found(2, 0.95, "a b c d"), found(3, 0.8, "x y z"), found(4, 0.0, "q")]
    assert [each.chunk for each in diversify(ranked, 0.7)] == [1, 3, 2, 4]
    assert [each.chunk for each in diversify(ranked, 1.0)] == [1, 2, 3, 4]
    assert [each.chunk for each in fuse(ranked, [], HybridOptions(mmr=True), 0)] == [1, 3, 2, 4]


def test_only_two_hundred_are_diversified() -> None:
    """R-233."""
    ranked = [found(i, 1 - i / 1000, "same") for i in range(230)]
    assert [each.chunk for each in diversify(ranked)[200:]] == list(range(200, 230))


@given(st.lists(st.tuples(st.floats(0, 1), st.text("ab ", max_size=6)), max_size=30), st.floats(0, 1))
def test_nothing_is_lost_or_duplicated(candidates: list[tuple[float, str]], trade_off: float) -> None:
    """R-233: it reorders and does not filter."""
    ranked = [found(i, score, text) for i, (score, text) in enumerate(candidates)]
    assert sorted(each.chunk for each in diversify(ranked, trade_off)) == list(range(len(ranked)))


def test_equal_and_empty_sets_are_handled() -> None:
    """R-233: there is no division by zero."""
    assert jaccard(frozenset(), frozenset()) == 0
    assert jaccard(frozenset("ab"), frozenset("bc")) == pytest.approx(1 / 3)
