"""Derives the overhead of each request in a recorded session, and how the provider counts its messages.

A recording contains messages, but each request also had a system prompt and tool schemas. If the provider's usage was
recorded, its prompt sizes are a linear function of our estimates of the messages: the slope is the provider's count per
estimated token, the intercept is the overhead. Reading stops at the first prompt that shrank: by then the other program
had removed content. Without usage, nothing is known and nothing is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from codecompanion.model.messages import Message

RATIOS = (0.5, 2.5)
"""The valid range of ratios between a provider's count and an estimate; a count outside this range does not belong to
these messages.
"""
SHRUNK = 0.95
"""Share of the previous prompt's size below which a prompt has lost content; smaller differences are counting noise."""


class RecordedSizes(msgspec.Struct, frozen=True):
    """Sizes from a recording. `fixed`: tokens of system prompt and tool schemas. `ratio`: actual / estimated tokens."""

    fixed: int = 0
    ratio: float = 1.0

    def request(self, estimated: int) -> int:
        """Return the size of a request from the estimate of its messages."""
        return self.fixed + round(self.ratio * estimated)


def find_sizes(messages: Sequence[Message]) -> RecordedSizes:
    """Return the sizes derived from the recorded usage; the messages must have counts."""
    points = list(_reported(messages))
    if not points:
        return RecordedSizes()
    half = max(1, len(points) // 2)
    pairs = zip(points, points[half:], strict=False)
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairs if after[0] > before[0]]
    ratio = min(max(median(slopes), RATIOS[0]), RATIOS[1]) if slopes else 1.0
    return RecordedSizes(max(0, round(median(prompt - ratio * estimated for estimated, prompt in points))), ratio)


def _reported(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield (estimated tokens of messages, prompt tokens) of each reported request until the first shrunken prompt."""
    estimated = largest = 0
    for message in messages:
        prompt = message.usage.prompt_tokens if message.role == "assistant" and message.usage else 0
        if prompt:
            if prompt < SHRUNK * largest:
                return
            largest = max(largest, prompt)
            yield estimated, prompt
        estimated += message.tokens
