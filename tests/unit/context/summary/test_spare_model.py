"""Whether a summary by a model can pay in a small window."""

from __future__ import annotations

import pytest

from codecompanion.context.summary.spare_model import TOO_SLOW, costs_more_than_it_saves, takes_too_long
from codecompanion.context.work import CacheState, SummaryRequest, Work
from tests.unit.context.builders import assistant, env, made, user

CHAT = made(*(one for n in range(10) for one in (user("q" * 400), assistant("a" * 400))))
"""Ten turns of 200 tokens."""


def request(prompt: int, output: int) -> SummaryRequest:
    return SummaryRequest(prompt="", subject=CHAT, prompt_tokens=prompt, max_output_tokens=output)


@pytest.mark.parametrize(
    ("removed", "requests", "written", "costs"),
    [
        (4, [(700, 300)], 300, True),  # frees 100 tokens for half a turn
        (20, [(2_400, 300)], 300, False),  # frees 1,700 for eight turns
        (10, [(1_400, 200)], 200, False),  # 800 for four
        (10, [(1_400, 700)], 700, True),
        (10, [(900, 100), (900, 100)], 500, True),  # parts are put together by one more request
        (0, [(400, 100)], 100, True),
    ],
)
def test_requests_are_weighed_against_the_tokens_freed_until_the_window_is_full_again(
    removed: int, requests: list[tuple[int, int]], written: int, costs: bool
) -> None:
    work = Work(before=CHAT, messages=CHAT[removed:], removed=CHAT[:removed])
    asked = [request(*figures) for figures in requests]
    assert costs_more_than_it_saves(work, asked, written, env(CHAT, 4_096)) is costs


@pytest.mark.parametrize(
    ("cache", "has_utility", "costs"),
    [
        (CacheState(warm_tokens=1_000, read_price=0), False, True),
        (CacheState(warm_tokens=1_000, read_price=0), True, False),  # another model writes
        (CacheState(read_price=0), False, False),  # the whole chat is read in any case
        (CacheState(warm_tokens=1_000), False, False),  # cached tokens cost money
    ],
)
def test_tokens_in_a_free_cache_save_nothing(cache: CacheState, has_utility: bool, costs: bool) -> None:
    work = Work(before=CHAT, messages=(), removed=CHAT)
    known = env(CHAT, 4_096, cache=cache, has_utility=has_utility)
    assert costs_more_than_it_saves(work, [request(2_400, 300)], 300, known) is costs


def seconds(read: int, written: int) -> float:
    """Return the time needed by a server that reads 100 tokens and writes 20 tokens a second."""
    return read / 100 + written / 20


@pytest.mark.parametrize(
    ("requests", "max_wait_s", "expected"),
    [
        ([(2_000, 2_000)], 30, 55),  # a summary of 700 tokens is expected
        ([(2_000, 200)], 30, None),
        ([(2_000, 100), (2_000, 100)], 30, 50),  # one after the other
        ([(20_000, 2_000)], 0, None),
    ],
)
def test_a_model_that_takes_longer_than_the_user_should_wait_is_not_asked(
    requests: list[tuple[int, int]], max_wait_s: float, expected: int | None
) -> None:
    asked = [request(*figures) for figures in requests]
    declined = takes_too_long(asked, max_wait_s, env(CHAT, 8_192, writer_seconds=seconds))
    assert (declined and declined.reason) == (f"{TOO_SLOW}{expected} s" if expected else None)
    assert takes_too_long(asked, max_wait_s, env(CHAT, 8_192)) is None  # a provider, or no speed is known


def test_tokens_in_the_cache_take_no_time() -> None:
    asked = SummaryRequest(prompt="", subject=CHAT, prompt_tokens=6_000, unread_tokens=500, max_output_tokens=300)
    assert takes_too_long([asked], 30, env(CHAT, 8_192, writer_seconds=seconds)) is None
