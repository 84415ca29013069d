"""The part of a chat that is in a prompt cache (lesson 22)."""

from __future__ import annotations

import math

import pytest

from codecompanion.context.editing.cache_state import find_cache_state
from codecompanion.context.work import CacheState
from codecompanion.model.messages import Message

CHAT = (
    Message(id="1", role="user", content="a", tokens=100, ts=1000.0),
    Message(id="2", role="assistant", content="b", tokens=10, ts=1010.0),
    Message(id="3", role="user", content="c", tokens=20, ts=1020.0),
    Message(id="4", role="assistant", content="d", tokens=30, ts=1030.0),
    Message(id="5", role="user", content="e", tokens=40, ts=1200.0),
)


@pytest.mark.parametrize(
    ("now", "lifetime_s", "warm"),
    [(1200.0, 300.0, 130), (1330.0, 300.0, 130), (1331.0, 300.0, 0), (1331.0, 3600.0, 130), (0.0, 300.0, 130)],
)
def test_the_last_request_is_warm_until_its_time_is_over(now: float, lifetime_s: float, warm: int) -> None:
    assert find_cache_state(CHAT, now, lifetime_s).warm_tokens == warm
    total = sum(message.tokens for message in CHAT)
    assert find_cache_state(CHAT, now, lifetime_s, total) == find_cache_state(CHAT, now, lifetime_s)


def test_nothing_is_warm_before_the_first_reply_or_without_a_cache() -> None:
    assert find_cache_state(CHAT[:1], 1000.0).warm_tokens == 0
    uncached = find_cache_state(CHAT, 1200.0, 0.0)
    assert (uncached.warm_tokens, uncached.read_price, uncached.write_price) == (0, 1.0, 1.0)


def test_a_users_own_server_reads_its_cache_for_free() -> None:
    """Its cache does not expire; new text costs the time to read it."""
    later = CHAT[-1].ts + 1e6
    assert find_cache_state(CHAT, later, math.inf, is_own=True) == CacheState(130, 0.0, 1.0, math.inf)
    assert find_cache_state(CHAT[:1], later, math.inf, is_own=True) == CacheState(0, 0.0, 1.0, math.inf)


def test_a_chat_that_its_server_has_lost_is_cold_at_once() -> None:
    """Its speed stays known: it determines the cost of reading the chat again."""
    lost = find_cache_state(CHAT, CHAT[-1].ts, math.inf, is_own=True, is_lost=True, reads_per_s=930.0)
    assert lost == CacheState(0, 0.0, 1.0, math.inf, 930.0)
    assert lost.is_cold
