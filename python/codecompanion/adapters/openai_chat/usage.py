"""Converts an endpoint's reported token counts to a `Usage` whose figures do not overlap (lesson 7).

`prompt_tokens` of Chat Completions includes tokens read from the cache and written to it. The details are under
`prompt_tokens_details` (OpenAI, OpenRouter), `prompt_cache_hit_tokens` (DeepSeek) or Anthropic's names (gateways).
`completion_tokens` includes the reasoning, except where the total shows that it does not (xAI).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion.adapters.speed import Timings
from codecompanion.model.messages import Usage

MAX_TOKENS = 10**12  # maximum plausible token count; a larger report is invalid


def normalise_usage(reported: object) -> Usage | None:
    """Return the usage of one request, or None if the report has no figures."""
    if not isinstance(reported, Mapping):
        return None
    prompt = _count(reported, "prompt_tokens", "input_tokens")
    output = _count(reported, "completion_tokens", "output_tokens")
    if prompt is None and output is None:
        return None
    prompt, output = prompt or 0, output or 0
    prompt_details = _table(reported, "prompt_tokens_details", "input_tokens_details")
    output_details = _table(reported, "completion_tokens_details", "output_tokens_details")
    cache_read = _first(
        _count(prompt_details, "cached_tokens", "cache_read_tokens"),
        _count(reported, "prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens"),
    )
    cache_write = _first(
        _count(prompt_details, "cache_write_tokens", "cache_creation_tokens"),
        _count(reported, "cache_creation_input_tokens"),
    )
    reasoning = _first(_count(output_details, "reasoning_tokens"), _count(reported, "reasoning_tokens"))
    total = _count(reported, "total_tokens") or 0
    if reasoning > output or (reasoning and total == prompt + output + reasoning):
        output += reasoning
    # A report that contradicts itself must not yield a prompt larger than it claims.
    cache_read = min(cache_read, prompt)
    cache_write = min(cache_write, prompt - cache_read)
    return Usage(
        input_tokens=prompt - cache_read - cache_write,
        output_tokens=output,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        reasoning_tokens=reasoning,
    )


def read_and_cached(usage: Usage | None, reported: object, timings: Timings | None) -> tuple[Usage | None, int | None]:
    """Return the usage, and the number of prompt tokens that were not cached (None if it was not reported).

    llama.cpp reports this number in `timings`; its older versions report no cached tokens.
    """
    if usage is None:
        return None, None
    read = timings.read_tokens if timings else 0
    if 0 < read <= usage.prompt_tokens:
        if not usage.cache_read_tokens:
            usage = msgspec.structs.replace(usage, input_tokens=read, cache_read_tokens=usage.prompt_tokens - read)
        return usage, read
    details = _table(reported, "prompt_tokens_details") if isinstance(reported, Mapping) else {}
    return usage, None if _count(details, "cached_tokens") is None else usage.input_tokens + usage.cache_write_tokens


def _count(table: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = table.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS:
            return int(value)
    return None


def _first(*counts: int | None) -> int:
    return next((count for count in counts if count), 0)


def _table(table: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        value = table.get(name)
        if isinstance(value, Mapping):
            return value
    return {}
