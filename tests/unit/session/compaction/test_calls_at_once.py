"""Summary calls at the same time: how many, and how much silence a run of them has left."""

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
def test_calls_at_the_same_time_are_waited_for_once(batches: list[list[float]], left: float) -> None:
    budget = SilenceBudget(600)
    for batch in batches:
        budget.begin_batch()
        for waited_s in batch:
            budget.take(waited_s)
    assert budget.left_s == left


@pytest.mark.parametrize(
    ("is_local", "slots", "parts"), [(False, 0, 4), (True, 0, 1), (True, 1, 1), (True, 3, 3), (True, 16, 4)]
)
def test_a_local_server_is_asked_for_one_part_for_each_slot(is_local: bool, slots: int, parts: int) -> None:
    """What it has no slot for would wait in its queue, and the wait would count as silence."""
    assert parts_at_once(is_local=is_local, slots=slots) == parts
