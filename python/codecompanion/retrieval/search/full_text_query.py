"""Converts a question to a full-text query, and SQLite's rank to a score (R-230, R-231).

Quoting turns FTS operators in a question into plain words. The index contains text split on camelCase and snake_case,
so each query word is split in the same way inside its quotes: a name becomes a phrase of its parts.
"""

from __future__ import annotations

from codecompanion.formats.code_words import index_words
from codecompanion.formats.regex import regex

MAX_QUERY_CHARS = 4096
MAX_WORD_CHARS = 128
MAX_WORDS = 32

_WORD = regex(r"\w+")


def query_words(text: str) -> tuple[str, ...]:
    """Return the words of a question: runs of letters, digits and underscores, in order, the first 32 (R-230)."""
    words = _WORD.findall(text[:MAX_QUERY_CHARS])
    return tuple(word[:MAX_WORD_CHARS] for word in words[:MAX_WORDS])


def index_query(text: str) -> str:
    """Return the query that requires every word of `text`, each as a phrase of its parts (R-230, R-231).

    Words that the index omits are left out; "" if no word remains.
    """
    phrases = (" ".join(index_words(word)) for word in query_words(text))
    return " AND ".join(f'"{phrase}"' for phrase in phrases if phrase)


def text_score(bm25: float) -> float:
    """Convert SQLite's `bm25()`, which is negative and lower for better matches, to a score from 0 to 1 (R-231)."""
    raw = max(-bm25, 0.0)
    return raw / (1.0 + raw)
