"""Defines the results of a search in a project's code (R-237, R-238)."""

from __future__ import annotations

from typing import Literal

import msgspec

SearchTier = Literal["hybrid", "fts", "vector", "terms"]
"""The search tiers of the published document (R-227); a combined ranking has the name of its first contributor."""
WantedTier = SearchTier | Literal["auto"]
"""The tier requested; `auto` = the combined ranking."""

COMMON = "+common"
"""Suffix of `method` for project files that were added for a broad question (R-236, R-238), as in `fts+common`."""


class FoundCode(msgspec.Struct, frozen=True):
    """Part of a file found by a search: lines 1-based and inclusive, `score` 0..1, `text` as currently on disk.

    `method`: the tier that found it, followed by `COMMON` for a project file added without being found. `symbol`:
    "parent.name" or "". `kind`: as for a chunk. `signals`: (name, share of the score), to explain it (R-268).
    """

    path: str
    start: int
    end: int
    score: float
    method: str
    symbol: str = ""
    text: str = ""
    kind: str = "block"
    signals: tuple[tuple[str, float], ...] = ()


class SearchOutcome(msgspec.Struct, frozen=True):
    """The results of one search, best first, with the tier that answered, its duration, and the unused tiers.

    `is_partial`: the index was incomplete, so some files were searched as text only. `not_used`: sentences such as
    "hybrid: no embeddings are configured".
    """

    results: tuple[FoundCode, ...]
    tier: SearchTier
    ms: float = 0.0
    is_partial: bool = False
    not_used: tuple[str, ...] = ()
