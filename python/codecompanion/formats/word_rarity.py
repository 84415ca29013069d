"""How much a word says that only some of many texts have."""

from __future__ import annotations

import math


def rarity(with_word: int, texts: int) -> float:
    """Return the inverse document frequency of BM25 for a word in `with_word` of `texts` texts: above 0, rare is more.

    Counts may be of different moments: more texts with the word than texts are as many.
    """
    return math.log(1 + (max(texts - with_word, 0) + 0.5) / (with_word + 0.5))
