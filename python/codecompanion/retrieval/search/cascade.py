"""Runs the search tiers in order; the next is tried after an exception or an empty result (R-227).

hybrid → full text → cosine over the stored vectors → term counting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from codecompanion.model.found_code import SearchTier, WantedTier
from codecompanion.retrieval.search.fusion import Candidate

TIERS: tuple[SearchTier, ...] = ("hybrid", "fts", "vector", "terms")
_NAMES = {"hybrid": "hybrid", "fts": "keyword search", "vector": "vector search", "terms": "term counting"}


class TierUnavailable(Exception):
    """Raised when a tier cannot be tried; the message is the reason, as in `no embeddings are configured`."""


class Answered(msgspec.Struct, frozen=True):
    """The results of the cascade, the tier that found them, and why each earlier tier found nothing."""

    found: tuple[Candidate, ...]
    tier: SearchTier
    not_used: tuple[str, ...] = ()


def tiers_from(tier: WantedTier) -> tuple[SearchTier, ...]:
    """Return the tier and its fallbacks; all of them for `auto`."""
    return TIERS if tier == "auto" else TIERS[TIERS.index(tier) :]


def run_cascade(tiers: Sequence[SearchTier], search: Callable[[SearchTier], Sequence[Candidate]]) -> Answered:
    """Return the results of the first tier that succeeds and finds something (R-227).

    `search` may raise any exception; the error is recorded and the next tier is tried. If no tier finds anything, the
    last one counts as the tier that answered.
    """
    not_used = list[str]()
    for tier in tiers:
        try:
            found = tuple(search(tier))
        except Exception as error:
            not_used.append(f"{_NAMES[tier]}: {str(error) or type(error).__name__}")
            continue
        if found:
            return Answered(found, tier, tuple(not_used))
        not_used.append(f"{_NAMES[tier]}: nothing found")
    return Answered((), tiers[-1], tuple(not_used))
