"""Parallel summary calls: their number, and the silence timeout they share."""

from __future__ import annotations

import pytest

from codecompanion.session.compaction.compaction import parts_at_once
from codecompanion.session.compaction.silence_budget import SilenceBudget


@pytest.mark.parametrize(
    ("batches", "left"),
    [
        ([[]], 600),
        ([[60.0]], 540),
        ([[60.0, 30.0, 60.0, 10.0]], 540),  # they waited at the same time
        ([[60.0, 30.0], [40.0, 20.0]], 500),
        ([[400.0], [300.0]], -100),
    ],
)
def test_parallel_calls_share_one_wait(batches: list[list[float]], left: float) -> None:
    budget = SilenceBudget(600)
    for batch in batches:
        budget.begin_batch()
        for waited_s in batch:
            budget.take(waited_s)
    assert budget.left_s == left


@pytest.mark.parametrize(
    ("is_local", "slots", "parts"), [(False, 0, 4), (True, 0, 1), (True, 1, 1), (True, 3, 3), (True, 16, 4)]
)
def test_a_local_server_gets_one_part_per_slot(is_local: bool, slots: int, parts: int) -> None:
    """Parts without a slot would wait in its queue, and that wait would count as silence."""
    assert parts_at_once(is_local=is_local, slots=slots) == parts
