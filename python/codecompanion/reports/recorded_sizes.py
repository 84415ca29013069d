"""What every request of a recorded session had beside its messages, and how its provider counted them.

A recording holds messages; system prompt and tool schemas went along with each request all the same. Where the
provider's usage was recorded, its prompt sizes lie on a line over our estimates of the messages: the slope is how this
provider counts them, the rest is what was sent beside them. Read up to the first prompt that shrank: from there on the
other program had taken something out. Without usage nothing is known, and nothing is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from codecompanion.model.messages import Message

RATIOS = (0.5, 2.5)
"""Within these a provider's count differs from an estimate; what lies outside is no count of these messages."""
SHRUNK = 0.95
"""A prompt of less than so much of the one before it has lost something; less than that is a counter's noise."""


class RecordedSizes(msgspec.Struct, frozen=True):
    """`fixed`: tokens of system prompt and tool schemas. `ratio`: the provider's tokens for one of our estimate."""

    fixed: int = 0
    ratio: float = 1.0

    def request(self, estimated: int) -> int:
        """Return the size of a request whose messages are estimated at so many tokens."""
        return self.fixed + round(self.ratio * estimated)


def find_sizes(messages: Sequence[Message]) -> RecordedSizes:
    """Return what the recorded usage tells; the messages have been counted."""
    points = list(_reported(messages))
    if not points:
        return RecordedSizes()
    half = max(1, len(points) // 2)
    pairs = zip(points, points[half:], strict=False)
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairs if after[0] > before[0]]
    ratio = min(max(median(slopes), RATIOS[0]), RATIOS[1]) if slopes else 1.0
    return RecordedSizes(max(0, round(median(prompt - ratio * estimated for estimated, prompt in points))), ratio)


def _reported(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield (estimated tokens of the messages, tokens of the prompt) of each reported request up to one that shrank."""
    estimated = largest = 0
    for message in messages:
        prompt = message.usage.prompt_tokens if message.role == "assistant" and message.usage else 0
        if prompt:
            if prompt < SHRUNK * largest:
                return
            largest = max(largest, prompt)
            yield estimated, prompt
        estimated += message.tokens
