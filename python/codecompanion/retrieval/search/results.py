"""Reduces results for presentation: one per file, at most 15 (R-237)."""

from __future__ import annotations

from collections.abc import Iterable

from codecompanion.model.found_code import FoundCode

MAX_RESULTS = 15


def one_per_file(results: Iterable[FoundCode], most: int = MAX_RESULTS) -> tuple[FoundCode, ...]:
    """Return the first result of each file, in order, at most `most` (R-237)."""
    first: dict[str, FoundCode] = {}
    for result in results:
        first.setdefault(result.path, result)
    return tuple(first.values())[:most]
