"""Joins the keyword and vector results of the hybrid search (R-228, R-229, R-233)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from codecompanion.formats.regex import regex

MIN_FETCHED = 20
MAX_DIVERSIFIED = 200
_SIMILARITY_WORD = regex(r"[a-z0-9_]+")


class Candidate(msgspec.Struct, frozen=True):
    """A chunk found by keyword or vector search.

    `score`: 0..1; `text`: "" = none; `indexed_at`: seconds, None = unknown.
    """

    chunk: int
    path: str
    start: int
    end: int
    score: float
    text: str = ""
    symbol: str = ""
    kind: str = "block"
    indexed_at: float | None = None


class HybridOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for joining keyword and vector results (R-228, R-233); the defaults are the document's."""

    vector_weight: float = 0.7
    text_weight: float = 0.3
    top_k: int = 10
    decay: bool = False
    half_life_days: float = 30.0
    mmr: bool = False
    mmr_lambda: float = 0.7


def effective_weights(vector_weight: float, text_weight: float) -> tuple[float, float]:
    """Return both weights, clamped to 0..1 and normalised to sum to 1; 0.5 each if both are 0 (R-228)."""
    vector, text = _between(vector_weight, 0.0, 1.0), _between(text_weight, 0.0, 1.0)
    total = vector + text
    return (vector / total, text / total) if total > 0 else (0.5, 0.5)


def effective_top_k(top_k: int) -> int:
    """Return the number of results, clamped to 1..50 (R-228)."""
    return int(_between(top_k, 1, 50))


def fetched_from_each_side(top_k: int) -> int:
    """Return the number of chunks to request from each side, at least 20 even if fewer results are wanted (R-229)."""
    return max(effective_top_k(top_k), MIN_FETCHED)


def fuse(
    vector: Sequence[Candidate], text: Sequence[Candidate], options: HybridOptions, now: float
) -> tuple[Candidate, ...]:
    """Return the results of both sides, joined by chunk, best first, at most `top_k` (R-228, R-229, R-233).

    A side that did not find a chunk contributes 0. `now`: seconds, compared with `indexed_at` when scores decay.
    """
    vector_weight, text_weight = effective_weights(options.vector_weight, options.text_weight)
    by_chunk = {found.chunk: found for found in vector}
    for found in text:
        other = by_chunk.get(found.chunk)
        text_of_it = found.text or (other.text if other else "")
        by_chunk[found.chunk] = msgspec.structs.replace(found, text=text_of_it)
    sides = ({found.chunk: found.score for found in vector}, {found.chunk: found.score for found in text})
    joined = [
        msgspec.structs.replace(
            found, score=vector_weight * sides[0].get(chunk, 0.0) + text_weight * sides[1].get(chunk, 0.0)
        )
        for chunk, found in by_chunk.items()
    ]
    if options.decay:
        joined = [_decayed(found, options.half_life_days, now) for found in joined]
    ranked = sorted(joined, key=lambda found: -found.score)
    if options.mmr:
        ranked = list(diversify(ranked, options.mmr_lambda))
    return tuple(ranked[: effective_top_k(options.top_k)])


def decay(score: float, age_days: float, half_life_days: float = 30.0) -> float:
    """Return `score` × e^(−ln 2 / half-life × age); the half-life is clamped to 1..365 days (R-233)."""
    return score * math.exp(-math.log(2) / _between(half_life_days, 1.0, 365.0) * max(age_days, 0.0))


def diversify(ranked: Sequence[Candidate], trade_off: float = 0.7) -> tuple[Candidate, ...]:
    """Return the first 200 in the order of maximal marginal relevance, then the rest (R-233).

    `trade_off` 1 = by score alone, 0 = as different as possible from earlier results.
    """
    pool, rest = list(ranked[:MAX_DIVERSIFIED]), ranked[MAX_DIVERSIFIED:]
    if len(pool) < 2:
        return tuple(ranked)
    low, high = min(found.score for found in pool), max(found.score for found in pool)
    relevance = [(found.score - low) / (high - low) if high > low else 1.0 for found in pool]
    words = [frozenset(_SIMILARITY_WORD.findall(found.text.lower())) for found in pool]
    nearest = [0.0] * len(pool)
    left, order = list(range(len(pool))), list[int]()
    share = _between(trade_off, 0.0, 1.0)
    while left:
        best = max(left, key=lambda i: (share * relevance[i] - (1 - share) * nearest[i], -i))
        left.remove(best)
        order.append(best)
        for i in left:
            nearest[i] = max(nearest[i], jaccard(words[i], words[best]))
    return (*(pool[i] for i in order), *rest)


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the Jaccard similarity of two sets: the share of common words, 0..1; 0 for two empty sets."""
    return len(one & other) / len(one | other) if one or other else 0.0


def _decayed(found: Candidate, half_life_days: float, now: float) -> Candidate:
    if found.indexed_at is None:
        return found
    age_days = (now - found.indexed_at) / 86_400
    return msgspec.structs.replace(found, score=decay(found.score, age_days, half_life_days))


def _between(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
