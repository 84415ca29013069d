"""Cache misses of the user's own server, judged by its replies."""

from __future__ import annotations

import pytest

from codecompanion.model.messages import Usage
from codecompanion.session.accounts.lost_server_cache import MIN_SHARED, ReadAgain

USAGE = Usage(100, 10, cache_read_tokens=3_900)


def test_a_prefix_expected_in_the_cache_but_read_again_is_a_miss() -> None:
    """After one such reply, the next turn counts as cold; a running tool loop does after two; a hit ends both."""
    told = ReadAgain()
    assert told.judge(USAGE, 3_980, 3_900, "") == 3_880
    assert told.expects_loss(in_loop=False)
    assert not told.expects_loss(in_loop=True)
    assert told.judge(USAGE, 4_000, 3_900, "") == 3_900
    assert told.expects_loss(in_loop=True)
    assert told.judge(USAGE, 150, 3_900, "") == 0
    assert told.was_kept
    assert not told.expects_loss(in_loop=False)


def test_a_loss_that_was_expected_tells_nothing_of_the_next_one() -> None:
    told = ReadAgain()
    assert told.judge(USAGE, 4_000, 3_900, "restart") == 3_900
    assert not told.expects_loss(in_loop=False)
    assert not told.was_kept


@pytest.mark.parametrize(
    ("usage", "read", "shared"),
    [
        (None, 4_000, 3_900),
        (USAGE, None, 3_900),
        (USAGE, 4_000, 0),  # all of it is new: the first request, another system prompt
        (USAGE, 4_000, MIN_SHARED - 1),
    ],
)
def test_where_nothing_can_be_known_nothing_is_said(usage: Usage | None, read: int | None, shared: int) -> None:
    told = ReadAgain()
    assert told.judge(usage, read, shared, "") == 0
    assert not told.was_kept
    assert not told.expects_loss(in_loop=False)


def test_a_wrong_estimate_is_not_a_miss() -> None:
    told = ReadAgain()
    assert told.judge(USAGE, 1_500, 3_900, "") == 0
    assert told.was_kept
