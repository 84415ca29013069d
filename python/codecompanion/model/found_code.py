"""The results of a search in the code of a project (R-237, R-238)."""

from __future__ import annotations

from typing import Literal

import msgspec

SearchTier = Literal["hybrid", "fts", "vector", "terms"]
"""The document's tiers (R-227). A combined ranking is named after the first of them that contributed."""
WantedTier = SearchTier | Literal["auto"]
"""`auto` = the combined ranking."""

COMMON = "+common"
"""Suffix of the method of a project file added for a broad question (R-236, R-238), as in `fts+common`."""


class FoundCode(msgspec.Struct, frozen=True):
    """A piece of a file found by a search: lines 1-based and inclusive, `score` 0..1, `text` as currently on disk.

    `method`: the tier that found it, followed by `COMMON` for a project file that was not searched for. `symbol` =
    "parent.name" or ""; `kind` as of a chunk; `signals` = name and share of the score, to explain it (R-268).
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
    """The results of one search, best first; the tier that answered; its duration; unused tiers and why.

    `is_partial`: the index was incomplete, so some files were searched as text only. `not_used`: sentences such as
    "hybrid: no embeddings are configured".
    """

    results: tuple[FoundCode, ...]
    tier: SearchTier
    ms: float = 0.0
    is_partial: bool = False
    not_used: tuple[str, ...] = ()
