"""Prompt caching as documented by the provider, with a clock that only tests advance.

A prefix (tools, system, messages, in this order) is written at every breakpoint and found again by a later request at
one of its breakpoints or up to 19 blocks before it. Prefixes below the model's minimum are not cached. `tool_choice`,
`thinking` and the presence of images are part of the prefix of the messages (`Prompt.salt`); the positions of
breakpoints are not. A cache hit renews the prefix's lifetime.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from tests.providers.anthropic.models import ModelSpec
from tests.providers.anthropic.prompt import (
    THINKING_KINDS,
    TOOL_SYSTEM_TOKENS,
    Prompt,
    block_tokens,
    canonical,
    text_tokens,
)

LOOKBACK = 20
LIFETIME_S = {"5m": 300.0, "1h": 3600.0}


@dataclass
class Clock:
    """A clock that advances only on request."""

    now: float = 0.0

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds


@dataclass(frozen=True)
class CacheUse:
    """Token counts of a prompt by source; the three add up to the whole prompt."""

    fresh: int
    read: int = 0
    written: Mapping[str, int] = field(default_factory=dict)
    """Tokens written, by lifetime: "5m" and "1h"."""

    def usage(self) -> dict[str, Any]:
        """Return the fields of a usage report."""
        return {
            "input_tokens": self.fresh,
            "cache_creation_input_tokens": sum(self.written.values()),
            "cache_read_input_tokens": self.read,
            "cache_creation": {f"ephemeral_{ttl}_input_tokens": self.written.get(ttl, 0) for ttl in LIFETIME_S},
        }


@dataclass(frozen=True)
class _Segment:
    """A tool, a system block or a content block. `ttl` is "" if there is no breakpoint after it."""

    key: str
    tokens: int
    ttl: str


class PromptCache:
    """The cache of one account."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[str, tuple[float, str]] = {}
        """Maps the key of a prefix to its expiry time and its lifetime."""

    def use(self, model: ModelSpec, prompt: Prompt) -> CacheUse:
        """Write the prompt to the cache and return the token counts that the request reads and writes."""
        segments = _segments(prompt)
        sums = list(accumulate(segment.tokens for segment in segments))
        total = sums[-1] if sums else 0
        keys = _prefix_keys(model.id, segments)
        breakpoints = [k for k, s in enumerate(segments) if s.ttl and sums[k] >= model.min_cached_tokens]
        found = max((self._find(keys, point) for point in breakpoints), default=-1)
        read = 0
        if found >= 0:
            read = sums[found]
            self._write(keys[found], self._entries[keys[found]][1])
        written: dict[str, int] = {}
        upto = read
        for point in breakpoints:
            if point > found:
                ttl = segments[point].ttl
                self._write(keys[point], ttl)
                written[ttl] = written.get(ttl, 0) + sums[point] - upto
                upto = sums[point]
        return CacheUse(total - upto, read, written)

    def _find(self, keys: list[str], point: int) -> int:
        """Return the position of the longest live prefix within reach of a breakpoint, or -1."""
        for position in range(point, max(point - LOOKBACK, -1), -1):
            expires, _ = self._entries.get(keys[position], (-1.0, ""))
            if expires > self._clock.now:
                return position
        return -1

    def _write(self, key: str, ttl: str) -> None:
        self._entries[key] = (self._clock.now + LIFETIME_S[ttl], ttl)


def _segments(prompt: Prompt) -> list[_Segment]:
    extra = TOOL_SYSTEM_TOKENS
    segments: list[_Segment] = []
    for tool in prompt.tools:
        text = canonical(tool)
        segments.append(_Segment(f"tool {text}", text_tokens(text) + extra, _ttl(tool)))
        extra = 0
    segments.extend(_Segment(f"system {canonical(b)}", block_tokens(b), _ttl(b)) for b in prompt.system)
    salted = prompt.salt
    for placed in prompt.blocks:
        key = f"{salted} {placed.role} {canonical(placed.block)}"
        segments.append(_Segment(key, block_tokens(placed.block), _block_ttl(placed.block)))
        salted = ""
    if prompt.automatic is not None:
        kinds = [*[""] * (len(segments) - len(prompt.blocks)), *(placed.kind for placed in prompt.blocks)]
        last = max((k for k, kind in enumerate(kinds) if kind not in THINKING_KINDS), default=None)
        if last is not None and not segments[last].ttl:
            segments[last] = _Segment(segments[last].key, segments[last].tokens, prompt.automatic.get("ttl", "5m"))
    return segments


def _block_ttl(block: Mapping[str, Any]) -> str:
    """Return the lifetime marked on a block or on one inside it: a tool result ends where its last part ends."""
    content = block.get("content")
    inner = [_ttl(part) for part in content] if block["type"] == "tool_result" and isinstance(content, list) else []
    return _ttl(block) or next((ttl for ttl in inner if ttl), "")


def _ttl(block: Mapping[str, Any]) -> str:
    marker = block.get("cache_control")
    return str(marker.get("ttl", "5m")) if marker else ""


def _prefix_keys(start: str, segments: list[_Segment]) -> list[str]:
    key = start
    keys: list[str] = []
    for segment in segments:
        key = hashlib.sha256(f"{key}\n{segment.key}".encode("utf-8", "surrogatepass")).hexdigest()
        keys.append(key)
    return keys
