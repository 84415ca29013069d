"""The state machine: every pair of states (architecture.md)."""

from __future__ import annotations

import itertools

import pytest

from codecompanion.context.policy.policy import Cooldown
from codecompanion.errors import InvalidTransition
from codecompanion.model.messages import ToolCall
from codecompanion.session.compaction.automatic_outcomes import CompactionGuard
from codecompanion.session.state import TRANSITIONS, State, step
from codecompanion.session.turn.guards import over_request_limit, repeated_call


@pytest.mark.parametrize(("current", "wanted"), list(itertools.product(State, State)))
def test_only_the_transitions_of_the_table_are_possible(current, wanted):
    if wanted is current or wanted in TRANSITIONS[current]:
        assert step(current, wanted) is wanted
    else:
        with pytest.raises(InvalidTransition, match=f"from {current} to {wanted}"):
            step(current, wanted)


def test_every_state_but_idle_can_be_cancelled_and_ends_idle():
    for state in set(State) - {State.IDLE, State.CANCELLING}:
        assert State.CANCELLING in TRANSITIONS[state]
    assert TRANSITIONS[State.CANCELLING] == {State.IDLE}


def test_every_state_leads_back_to_idle():
    for state in set(State) - {State.IDLE}:
        assert State.IDLE in TRANSITIONS[state]


@pytest.mark.parametrize(
    ("requests", "limit", "stops"), [(31, 32, False), (32, 32, True), (10**6, -1, False), (0, 0, True)]
)
def test_the_request_limit_is_exact_and_negative_means_unlimited(requests, limit, stops):
    """R-336."""
    assert bool(over_request_limit(requests, limit)) is stops


def test_a_call_repeated_four_times_in_ten_is_a_loop():
    """R-336."""
    same, other = ToolCall("x", "t", "{}"), [ToolCall(str(i), "t", str(i)) for i in range(20)]
    assert not repeated_call([same] * 3 + other[:7])
    assert repeated_call([same] * 3 + other[:6] + [same])
    assert not repeated_call([same, *other[:3], same, *other[3:6], same, *other[6:9], same])


def test_the_guard_pauses_after_three_failures_and_resets_after_a_success():
    """R-532."""
    cooldown, guard = Cooldown(failures=3, cycles=2), CompactionGuard()
    for _ in range(2):
        guard = guard.after_failure(5, 900, 1000, cooldown)
        assert guard.allows(5, 900)
    paused = guard.after_failure(5, 900, 1000, cooldown)
    assert [paused.allows(cycle, 900) for cycle in (5, 6, 7)] == [False, False, True]
    assert guard.after_success().after_failure(9, 900, 1000, cooldown).allows(9, 900)


def test_a_pause_ends_early_if_the_chat_keeps_growing():
    """R-532: one long tool loop is a single cycle and must not reach the window unmanaged."""
    guard = CompactionGuard()
    for _ in range(3):
        guard = guard.after_failure(5, 900, 1000, Cooldown(failures=3, cycles=2))
    assert [guard.allows(5, tokens) for tokens in (900, 949, 950)] == [False, False, True]


def test_pauses_become_longer_until_a_compaction_helps():
    """R-532: if the summariser always fails, a 1,000-token window does not ask it after every tool result."""
    guard, asked = CompactionGuard(), []
    for turn in range(40):
        for tokens in (880, 940, 990, 1000):
            if guard.allows(turn, tokens):
                asked.append(turn)
                guard = guard.after_failure(turn, tokens, 1000, Cooldown(failures=3, cycles=2))
    assert asked == [0, 0, 0, 2, 6, 14, 30]
    assert guard.after_success() == CompactionGuard()
