"""OpenAI's prompt cache, simulated: it finds the prefix of a prompt seen before, with a clock that tests advance.

From the prompt caching guide: prompts of 1,024 tokens and more, hits in steps of 128 tokens, exact prefixes only, by
model and `prompt_cache_key`. Where the guide is vague, the strict interpretation is used: requests with different keys
never share a prefix, and an entry is forgotten after five idle minutes, the shortest time the guide promises.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

MIN_TOKENS = 1024
STEP_TOKENS = 128
LIFETIME_S = 300.0


@dataclass
class PromptCache:
    """The cache of one provider. `now_s` is its clock, which only tests advance."""

    now_s: float = 0.0
    lifetime_s: float = LIFETIME_S
    _last_used: dict[tuple[str, bytes], float] = field(default_factory=dict)

    def read(self, key: str, tokens: Sequence[int]) -> tuple[int, int]:
        """Return how many tokens of the prompt's prefix were already cached and how many are newly cached.

        Remember the prompt.
        """
        marks = _prefixes(tokens)
        cached = max((length for length, mark in marks if self._is_warm((key, mark))), default=0)
        written = marks[-1][0] - cached if marks else 0
        for _, mark in marks:
            self._last_used[key, mark] = self.now_s
        return cached, written

    def _is_warm(self, entry: tuple[str, bytes]) -> bool:
        used = self._last_used.get(entry)
        return used is not None and self.now_s - used <= self.lifetime_s


def _prefixes(tokens: Sequence[int]) -> list[tuple[int, bytes]]:
    """Return the lengths of cacheable prefixes, each with the digest of the prefix."""
    flat = array("L", tokens)
    digest = hashlib.blake2b(digest_size=16)
    marks: list[tuple[int, bytes]] = []
    for start in range(0, len(flat) - STEP_TOKENS + 1, STEP_TOKENS):
        digest.update(flat[start : start + STEP_TOKENS].tobytes())
        if start + STEP_TOKENS >= MIN_TOKENS:
            marks.append((start + STEP_TOKENS, digest.digest()))
    return marks
