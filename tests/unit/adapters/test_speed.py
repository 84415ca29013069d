"""The speed of a local server: its own report, and a measurement."""

from __future__ import annotations

from typing import Any

import pytest

from codecompanion.adapters.base import ChatRequest
from codecompanion.adapters.http.reply_timer import ReplyTimer
from codecompanion.adapters.server_facts import NO_FACTS, ServerFacts
from codecompanion.adapters.speed import NO_SPEED, Speed, Timings, mean_speed, read_timings
from codecompanion.model.messages import Message, Usage
from tests.adapters.conftest import user

TOLD = {"cache_n": 9, "prompt_n": 1_000, "prompt_ms": 500, "predicted_n": 90, "predicted_ms": 3_000.0}
LOADED = ServerFacts(window=4_096)
REPLY = Message(id="r", role="assistant", content="b")


@pytest.mark.parametrize(
    ("told", "speed"),
    [
        (TOLD, Speed(2_000.0, 30.0)),
        ({**TOLD, "prompt_n": 20}, Speed(0.0, 30.0)),
        ({**TOLD, "predicted_n": 2}, Speed(2_000.0, 0.0)),
        ({**TOLD, "prompt_ms": 0, "predicted_ms": -1}, NO_SPEED),
        ({**TOLD, "prompt_ms": True, "predicted_ms": "3000"}, NO_SPEED),
        ({**TOLD, "prompt_ms": float("nan"), "predicted_ms": float("inf")}, NO_SPEED),
        ({}, NO_SPEED),
    ],
)
def test_llama_cpp_reports_tokens_and_milliseconds(told: Any, speed: Speed) -> None:
    """A figure is ignored if it is based on too few tokens or an invalid time."""
    timings = read_timings(told)
    assert timings is not None
    assert timings.speed == speed


@pytest.mark.parametrize("told", [7, "fast", [TOLD], {**TOLD, "prompt_n": 10**12}])
def test_a_value_that_is_not_a_table_of_times_is_ignored(told: Any) -> None:
    assert read_timings(told) is None


@pytest.mark.parametrize(
    ("facts", "messages", "usage", "speed"),
    [
        (LOADED, (user(),), Usage(900, 91), Speed(900.0, 30.0)),
        (LOADED, (user(), REPLY, user("c", 1)), Usage(900, 91, cache_read_tokens=600), Speed(900.0, 30.0)),
        # How much of it was read is unknown.
        (LOADED, (user(), REPLY, user("c", 1)), Usage(900, 91), Speed(0.0, 30.0)),
        # It may have loaded the model first.
        (NO_FACTS, (user(),), Usage(900, 91), Speed(0.0, 30.0)),
        (ServerFacts(window=4_096, state="sleeping"), (user(),), Usage(900, 91), Speed(0.0, 30.0)),
        (LOADED, (user(),), None, NO_SPEED),
    ],
)
def test_other_servers_are_timed(
    facts: ServerFacts, messages: tuple[Message, ...], usage: Usage | None, speed: Speed
) -> None:
    """One second passes before the first token, and three before the end of the reply."""
    ticks = iter((100.0, 101.0, 104.0))
    timer = ReplyTimer(ChatRequest(messages=messages, model="m"), facts, lambda: next(ticks))
    timer.see_output()
    timer.see_output()
    assert timer.timings(usage).speed == speed


def test_a_reply_without_output_has_no_timing() -> None:
    timer = ReplyTimer(ChatRequest(messages=(user(),), model="m"), LOADED, lambda: 1.0)
    assert timer.timings(Usage(900, 91)) == Timings()


def test_the_newest_reply_updates_the_mean_if_it_is_informative() -> None:
    known = Speed(1_000.0, 50.0)
    assert mean_speed(known, Speed(500.0, 0.0)) == Speed(850.0, 50.0)
    assert mean_speed(NO_SPEED, Speed(500.0, 0.0)) == Speed(500.0, 0.0)


@pytest.mark.parametrize(
    ("speed", "text"),
    [
        (Speed(930.4, 41.2), "reads 930, writes 41 tokens/s"),
        (Speed(12_345.0, 0.0), "reads 12,345 tokens/s"),
        (Speed(0.0, 2.34), "writes 2.3 tokens/s"),
        (NO_SPEED, ""),
    ],
)
def test_the_speed_is_described_in_words(speed: Speed, text: str) -> None:
    assert speed.text == text
