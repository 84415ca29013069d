"""Splitting a history into chunks: R-121…R-125."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.context.strategy_parameters import ChunkFormula
from codecompanion.context.transcript.chunk_entries import chunk_greedily
from codecompanion.context.transcript.chunk_plan import chunk_ratio, chunk_tokens, is_oversized
from tests.unit.context.builders import chat, count, user

FORMULA = ChunkFormula()
HUGE = 10**9


@pytest.mark.parametrize(
    ("window", "expected"),
    [(4_000, 1_600), (16_000, 6_400), (30_000, 12_000), (32_000, 12_000), (128_000, 12_000), (2_097_152, 12_000)],
)
def test_a_chunk_is_two_fifths_of_the_window_and_at_most_12000(window, expected):
    """R-121."""
    assert chunk_tokens(10, window, HUGE, FORMULA) == expected


@pytest.mark.parametrize(
    ("average", "expected"),
    [(0, 0.4), (833, 0.4), (834, 0.4 - 0.20016), (1000, 0.16), (1042, 0.15), (9000, 0.15)],
)
def test_dense_messages_make_smaller_chunks(average, expected):
    """R-122: r = average × 1.2 / window; the ratio is 0.4 up to r = 0.1, then 0.4 − 2r, and at least 0.15."""
    assert chunk_ratio(average, 10_000, FORMULA) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("window", "expected"), [(128_000, 0.4), (588_288, 0.275), (1_048_576, 0.15), (2_097_152, 0.15)]
)
def test_very_large_windows_make_smaller_chunks(window, expected):
    """R-122: the ratio falls linearly between 128,000 and 1,048,576."""
    assert chunk_ratio(0, window, FORMULA) == pytest.approx(expected)


@given(average=st.integers(0, 10**6), more=st.integers(0, 10**6), window=st.integers(1, 4 * 10**6))
def test_the_ratio_stays_within_its_bounds_and_falls_with_density(average, more, window):
    """R-122."""
    ratio = chunk_ratio(average, window, FORMULA)
    assert 0.15 <= ratio <= 0.4
    assert chunk_ratio(average + more, window, FORMULA) <= ratio
    assert chunk_tokens(average, window, HUGE, FORMULA) <= 12_000


@given(window=st.integers(1, 4 * 10**6), more=st.integers(0, 4 * 10**6), density=st.floats(0, 2))
def test_the_ratio_falls_with_the_window(window, more, density):
    """R-122: the densities are equal."""
    smaller = chunk_ratio(density * window, window, FORMULA)
    assert chunk_ratio(density * (window + more), window + more, FORMULA) <= smaller + 1e-9


@pytest.mark.parametrize(
    ("summariser", "ratio", "expected"),
    [
        (12_000, 1.0, 9_000),  # a quarter of 12,000 is overhead
        (16_095, 1.0, 12_000),  # 16,095 − 4,023 is more than the cap
        (20_000, 1.0, 12_000),
        (8_000, 2.0, 3_000),
        (300, 1.0, 256),
    ],
)
def test_a_chunk_fits_the_window_of_the_summariser(summariser, ratio, expected):
    """R-123: chunk + overhead ≤ the summariser's window; overhead = min(4096, a quarter); a chunk is at least 256."""
    assert chunk_tokens(0, 200_000, summariser, FORMULA, ratio) == expected


@given(sizes=st.lists(st.integers(0, 60), max_size=40), limit=st.integers(1, 100))
def test_the_joined_chunks_are_the_messages(sizes, limit):
    """R-124: chunks are filled greedily and in order; a chunk exceeds the limit only if it is a single message."""
    messages = chat(*[user("xxxx" * size) for size in sizes])
    chunks = chunk_greedily([(message, count(message)) for message in messages], limit)
    assert tuple(m for chunk in chunks for m in chunk) == messages
    for chunk in chunks:
        assert chunk
        assert sum(map(count, chunk)) <= limit or len(chunk) == 1
    for chunk, following in pairwise(chunks):
        assert sum(map(count, chunk)) + count(following[0]) > limit


@pytest.mark.parametrize(("tokens", "left_out"), [(4166, False), (4167, True)])
def test_a_message_of_more_than_half_the_window_is_oversized(tokens, left_out):
    """R-125: the comparison is tokens × 1.2 > 0.5 × window, strict."""
    assert is_oversized(tokens, 10_000, FORMULA) is left_out
    assert not is_oversized(5000, 12_000, FORMULA)
