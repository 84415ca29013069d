"""Computes the chunk sizes of a long history for a summariser (R-121…R-125), without its text.

All figures are in uncalibrated tokens, unless a parameter says otherwise.
"""

from __future__ import annotations

import math

from codecompanion.context.strategy_parameters import ChunkFormula

_DENSE = 0.1
_DENSITY_DROP = 0.25
_LARGE_WINDOW, _LARGEST_WINDOW = 128_000, 1_048_576


def chunk_ratio(average_tokens: float, window: int, formula: ChunkFormula) -> float:
    """Return a chunk's share of the window (R-122): less for dense messages, less for very large windows."""
    density = average_tokens * formula.margin / max(1, window)
    by_density = formula.ratio
    if density > _DENSE:
        by_density = max(formula.min_ratio, formula.ratio - min(2 * density, _DENSITY_DROP))
    beyond = (window - _LARGE_WINDOW) / (_LARGEST_WINDOW - _LARGE_WINDOW)
    by_window = formula.ratio - (formula.ratio - formula.min_ratio) * min(1.0, max(0.0, beyond))
    return min(by_density, by_window)


def chunk_tokens(
    average_tokens: float, window: int, summariser_window: int, formula: ChunkFormula, summariser_ratio: float = 1.0
) -> int:
    """Return the size of a chunk (R-121, R-123). `summariser_ratio`: the summariser's tokens per our token."""
    # Rounded first, because otherwise 0.29 × 100 would be 28.999….
    size = math.floor(round(window * chunk_ratio(average_tokens, window, formula), 6))
    overhead = min(formula.overhead, summariser_window // 4)
    room = math.floor((summariser_window - overhead) / summariser_ratio)
    return max(formula.min_tokens, min(size, formula.max_tokens, room))


def is_oversized(tokens: int, window: int, formula: ChunkFormula) -> bool:
    """Return whether a message is too large to be summarised (R-125)."""
    return tokens * formula.margin > formula.oversize * window
