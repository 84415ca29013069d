"""Measures how fast a user's own server reads prompts and writes replies: time is the only cost of its requests.

llama.cpp times each reply itself (`timings` in the last chunk of a stream: `tools/server/README.md`). For other
servers, the time to the first token and the time from there to the end are measured; Ollama, vLLM and LM Studio report
no times in this wire format. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion.adapters.model_list import count_in

MIN_READ_TOKENS, MIN_WRITTEN_TOKENS = 64, 8
"""Minimum tokens read and written for a representative speed; smaller replies spend most of their time on other work.
"""
NEWEST_SHARE = 0.3
"""Weight (0..1) of the newest reply in the mean."""
_MAX_TOKENS = 10**9
_MAX_MS = 10**9


class Speed(msgspec.Struct, frozen=True):
    """A server's speed in tokens read and written per second; 0 means unknown."""

    reads: float = 0.0
    writes: float = 0.0

    def seconds_to_read(self, tokens: int) -> float:
        """Return the seconds to read a prompt with `tokens` new tokens, or 0 if unknown."""
        return tokens / self.reads if self.reads else 0.0

    def seconds_to_reply(self, read: int, written: int) -> float:
        """Return the seconds to read `read` uncached tokens and write `written`; both speeds must be known."""
        return read / self.reads + written / self.writes

    @property
    def text(self) -> str:
        """Return the speed as text, or "" if it is unknown."""
        known = (("reads", self.reads), ("writes", self.writes))
        said = ", ".join(f"{does} {_rounded(rate)}" for does, rate in known if rate)
        return f"{said} tokens/s" if said else ""


NO_SPEED = Speed()


class Timings(msgspec.Struct, frozen=True):
    """The timings of one reply: the numbers of uncached prompt tokens and reply tokens, and the seconds for each."""

    read_tokens: int = 0
    read_s: float = 0.0
    written_tokens: int = 0
    written_s: float = 0.0

    @property
    def speed(self) -> Speed:
        """Return the speed of this reply; a rate is 0 if it is not representative."""
        reads = self.read_tokens / self.read_s if self.read_tokens >= MIN_READ_TOKENS and self.read_s > 0 else 0.0
        enough = self.written_tokens >= MIN_WRITTEN_TOKENS and self.written_s > 0
        return Speed(reads, self.written_tokens / self.written_s if enough else 0.0)


def read_timings(told: Any) -> Timings | None:
    """Return the `timings` of llama.cpp's server, or None if they are invalid."""
    if not isinstance(told, Mapping):
        return None
    read, written = count_in(told, "prompt_n"), count_in(told, "predicted_n")
    if max(read, written) > _MAX_TOKENS:
        return None
    return Timings(read, _seconds_in(told, "prompt_ms"), written, _seconds_in(told, "predicted_ms"))


def mean_speed(known: Speed, newest: Speed) -> Speed:
    """Return the running mean updated with one more reply; a rate unknown in either comes from the other."""
    return Speed(_mean(known.reads, newest.reads), _mean(known.writes, newest.writes))


def _mean(known: float, newest: float) -> float:
    return known + NEWEST_SHARE * (newest - known) if known and newest else newest or known


def _seconds_in(table: Mapping[str, Any], name: str) -> float:
    value = table.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    return value / 1000 if 0 < value < _MAX_MS else 0.0


def _rounded(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
