"""Decides whether two words match: they have equal stems, one contains the other, or one is a typo (R-207, R-211)."""

from __future__ import annotations

from functools import lru_cache

MAX_EDITS = 2
MIN_FUZZY_LENGTH = 5
"""Minimum length of a word that may match despite a typo: nearly all shorter words are within two edits of each other.
"""
_MIN_STEM = 3
_ENDINGS = (
    *("izations", "ization", "isations", "isation", "ations", "ation", "ators", "ator", "ating", "ated", "ates", "ate"),
    *("ities", "ity", "ments", "ment", "ies", "ions", "ion", "ings", "ing", "ures", "ure", "ers", "ed", "er", "es"),
    *("ly", "s", "e", "y"),
)


@lru_cache(4096)
def stem(word: str) -> str:
    """Return the word without its ending: `authentication`, `authenticated` and `authenticates` become one stem."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM and not word.endswith("ss"):
            short = word.removesuffix(ending)
            return short[:-1] if len(short) > _MIN_STEM and short[-1] == short[-2] and short[-1] not in "ls" else short
    return word


@lru_cache(16384)
def is_same_word(word: str, keyword: str) -> bool:
    """Return whether a word of a question matches a keyword; both in lower case.

    Words shorter than `MIN_FUZZY_LENGTH` match exactly or by their stem (R-211).
    """
    if word == keyword or stem(word) == stem(keyword):
        return True
    if len(word) < MIN_FUZZY_LENGTH or len(keyword) < MIN_FUZZY_LENGTH:
        return False
    return keyword in word or keyword.startswith(word) or edits_within(word, keyword, MAX_EDITS)


@lru_cache(4096)
def _letters(word: str) -> frozenset[str]:
    return frozenset(word)


def edits_within(one: str, other: str, limit: int) -> bool:
    """Return whether at most `limit` insertions, deletions and replacements turn `one` into `other` (Levenshtein)."""
    if abs(len(one) - len(other)) > limit:
        return False
    letters, wanted_letters = _letters(one), _letters(other)
    if len(letters - wanted_letters) > limit or len(wanted_letters - letters) > limit:
        return False
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, wanted in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != wanted))
        if min(row) > limit:
            return False
    return row[-1] <= limit
