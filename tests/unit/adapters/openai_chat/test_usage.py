"""Usage reports of endpoints, as figures that do not overlap (lesson 7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.adapters.openai_chat.usage import normalise_usage, read_and_cached
from codecompanion.adapters.speed import Timings
from codecompanion.model.messages import Usage


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, Usage(10, 5)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
                "completion_tokens_details": {"reasoning_tokens": 8},
            },
            Usage(30, 20, 60, 10, 8),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_cache_hit_tokens": 64,
                "prompt_cache_miss_tokens": 36,
            },
            Usage(36, 20, 64),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 0, "prompt_tokens_details": None}, Usage(9, 0)),
        # xAI: the reasoning is not in completion_tokens, the total shows it.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 45,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(10, 35, 0, 0, 30),
        ),
        # A gateway that passes on Anthropic's names.
        (
            {
                "prompt_tokens": 50,
                "completion_tokens": 5,
                "cache_read_input_tokens": 20,
                "cache_creation_input_tokens": 10,
            },
            Usage(20, 5, 20, 10),
        ),
        # A report that contradicts itself.
        (
            {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 99}},
            Usage(0, 1, 10),
        ),
        ({"prompt_tokens": "many", "completion_tokens": None}, None),
        ({"cost": 0.1}, None),
        ({}, None),
        (None, None),
        ([1], None),
        ({"prompt_tokens": True, "completion_tokens": -5}, None),
        ({"prompt_tokens": 10**400, "completion_tokens": float("inf")}, None),
        ({"prompt_tokens": float("nan"), "completion_tokens": 7}, Usage(0, 7)),
    ],
)
def test_a_report_is_normalised(reported: Any, expected: Usage | None) -> None:
    """The reports are in the shapes of OpenAI, OpenRouter, DeepSeek, xAI and gateways."""
    assert normalise_usage(reported) == expected


COUNTS = st.integers(0, 10**9)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_the_prompt_is_never_larger_than_reported(
    prompt: int, output: int, cached: int, written: int, reasoning: int
) -> None:
    """Property: the four figures add up and none is negative."""
    usage = normalise_usage(
        {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
    )
    assert usage is not None
    assert usage.prompt_tokens == prompt
    assert min(usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) >= 0
    assert usage.output_tokens >= max(output, usage.reasoning_tokens)


READ = Timings(read_tokens=100, read_s=1.0)


@pytest.mark.parametrize(
    ("reported", "timings", "usage", "read"),
    [
        (None, READ, None, None),
        ({"prompt_tokens": 900}, None, Usage(900), None),  # no report about a cache
        ({"prompt_tokens": 900, "prompt_tokens_details": None}, None, Usage(900), None),  # vLLM without its flag
        ({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 0}}, None, Usage(900), 900),
        (
            {"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 700}},
            None,
            Usage(200, cache_read_tokens=700),
            200,
        ),
        ({"prompt_tokens": 900}, READ, Usage(100, cache_read_tokens=800), 100),  # older versions of llama.cpp
        ({"prompt_tokens": 100}, READ, Usage(100), 100),
        ({"prompt_tokens": 50}, READ, Usage(50), None),  # not about the same prompt
        ({"prompt_tokens": 900}, Timings(), Usage(900), None),
    ],
)
def test_how_much_of_a_prompt_was_read(
    reported: object, timings: Timings | None, usage: Usage | None, read: int | None
) -> None:
    """It comes from the server's timings or its cached tokens; 0 cached tokens is a figure, a missing field is not."""
    assert read_and_cached(normalise_usage(reported), reported, timings) == (usage, read)
