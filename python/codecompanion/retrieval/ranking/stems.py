"""Computes stems of the words in questions, paths, names and commit subjects, so that their forms match.

A light stemmer: enough for the few words of a path or a subject. The full-text index has its own (porter).
"""

from __future__ import annotations

from functools import lru_cache

from codecompanion.formats.code_words import index_words

_MIN_STEM = 3
_ENDINGS = (
    *(("ational", "ate"), ("ization", "ize"), ("iveness", "ive"), ("sses", "ss"), ("ies", "i"), ("ing", "")),
    *(("edly", ""), ("ed", ""), ("ment", ""), ("ness", ""), ("ation", "at"), ("ator", "at"), ("ers", ""), ("er", "")),
    *(("able", ""), ("s", ""), ("e", "")),
)
_KEEPS_DOUBLE = "ls"


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a lowercase word: `parsing`, `parser`, `parsed` → `pars`."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            word = word[: len(word) - len(ending)] + instead
            break
    return word[:-1] if len(word) > _MIN_STEM and word[-1] == word[-2] and word[-1] not in _KEEPS_DOUBLE else word


def stems_of(text: str) -> list[str]:
    """Return the stems of the words in a string, split as in the index, in order and with repetitions."""
    return [stem(word) for word in index_words(text)]
