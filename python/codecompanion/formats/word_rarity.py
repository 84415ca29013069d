"""Weights a word by its rarity among many documents."""

from __future__ import annotations

import math


def rarity(with_word: int, texts: int) -> float:
    """Return BM25's inverse document frequency of a word in `with_word` of `texts` texts: above 0, higher if rarer.

    The counts may have been taken at different times: if `with_word` exceeds `texts`, they count as equal.
    """
    return math.log(1 + (max(texts - with_word, 0) + 0.5) / (with_word + 0.5))
