"""The prefix-cache price model of `replay` (lessons 22, 23): every figure calculated manually."""

from __future__ import annotations

import pytest

from codecompanion.model.messages import Message, with_changes
from codecompanion.reports.cache_price import PrefixCache


def say(number: int, tokens: int) -> Message:
    return Message(id=f"m{number}", role="user", content=f"text {number}", tokens=tokens)


ONE, TWO, THREE = say(1, 100), say(2, 50), say(3, 10)


def test_the_sent_prefix_is_read_and_the_rest_is_written() -> None:
    cache = PrefixCache("5m").after((ONE, TWO), 0.0)
    assert cache.price((ONE, TWO, THREE), 0.0) == pytest.approx(0.1 * 150 + 1.25 * 10)


def test_the_first_request_is_written_as_a_whole() -> None:
    assert PrefixCache("5m").price((ONE, TWO), 0.0) == pytest.approx(1.25 * 150)


def test_an_edit_costs_everything_after_it() -> None:
    cache = PrefixCache("5m").after((ONE, TWO, THREE), 0.0)
    cleared = with_changes(TWO, content="cleared", tokens=5)
    assert cache.price((ONE, cleared, THREE), 0.0) == pytest.approx(0.1 * 100 + 1.25 * 15)


def test_the_same_words_in_a_new_message_object_are_still_cached() -> None:
    cache = PrefixCache("5m").after((ONE, TWO), 0.0)
    assert cache.price((with_changes(ONE, pinned=True), TWO), 0.0) == pytest.approx(0.1 * 150)


@pytest.mark.parametrize(("kind", "idle_s", "read"), [("5m", 300, True), ("5m", 301, False), ("1h", 301, True),
                                                      ("1h", 3601, False)])  # fmt: skip
def test_a_cache_lives_as_long_as_its_kind(kind: str, idle_s: float, read: bool) -> None:
    cache = PrefixCache(kind).after((ONE,), 1000.0)  # type: ignore[arg-type]
    assert cache.price((ONE,), 1000.0 + idle_s) == pytest.approx(100 * (0.1 if read else 1.25))
    assert cache.state(1000.0 + idle_s).warm_tokens == (100 if read else 0)


def test_a_request_without_a_time_is_immediate() -> None:
    assert PrefixCache("5m").after((ONE,), 1000.0).price((ONE,), 0.0) == pytest.approx(10)


def test_without_a_cache_every_token_costs_the_same() -> None:
    cache = PrefixCache("none").after((ONE, TWO), 0.0)
    assert cache.price((ONE, TWO, THREE), 0.0) == 160
    assert (cache.state(0.0).read_price, cache.state(0.0).write_price) == (1.0, 1.0)
