"""When a failed request is retried, and after how long a wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.adapters.errors.retry import MAX_WAIT_S, parse_retry_after, wait_before_retry
from codecompanion.errors import NetworkFailed, Overloaded, RateLimited, RequestRejected


def test_the_wait_doubles_up_to_a_limit() -> None:
    """The first wait is half a second, the longest half a minute."""
    error = NetworkFailed("x")
    waits = [wait_before_retry(error, attempt, max_retries=20, random=0.5) for attempt in range(1, 21)]
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits[-1] == MAX_WAIT_S


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_the_jitter_stays_within_a_quarter(random: float, attempt: int) -> None:
    """Many editors that use one gateway do not retry at the same time, and no value overflows."""
    wait = wait_before_retry(Overloaded("x"), attempt, max_retries=10_000, random=random)
    middle = wait_before_retry(Overloaded("x"), attempt, max_retries=10_000, random=0.5)
    assert wait is not None
    assert middle is not None
    assert 0.75 * middle <= wait <= 1.25 * middle


def test_the_retries_are_limited() -> None:
    """With `max_retries` 0 there are none; errors that a retry cannot fix are never retried."""
    assert wait_before_retry(NetworkFailed("x"), 1, max_retries=0, random=0.5) is None
    assert wait_before_retry(NetworkFailed("x"), 3, max_retries=3, random=0.5) is not None
    assert wait_before_retry(NetworkFailed("x"), 4, max_retries=3, random=0.5) is None
    assert wait_before_retry(RequestRejected("x"), 1, max_retries=3, random=0.5) is None


@pytest.mark.parametrize(("wished", "wait"), [(0.0, 0.0), (7.5, 7.5), (60.0, 60.0), (61.0, None), (86_400.0, None)])
def test_the_providers_wait_is_respected_within_reason(wished: float, wait: float | None) -> None:
    """The wait is exact, without jitter; a longer wait is the user's decision."""
    assert wait_before_retry(RateLimited("x", wished), 1, max_retries=3, random=0.9) == wait


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "7s"}, 7.0),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after": ".5"}, 0.5),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "1" + "0" * 11}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "Thu, 01 Jan 9970 00:01:40 GMT"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 -0000"}, 90.0),
        ({"retry-after": "Thu, 99 Jan 1970 00:01:40 GMT"}, None),
        ({"retry-after": "\x00"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_parsed_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    """The forms are seconds, milliseconds and a date; invalid values are ignored."""
    assert parse_retry_after(headers, now=10.0) == seconds
