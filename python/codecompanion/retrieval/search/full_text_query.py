"""Converts a question to a full-text query, and SQLite's rank to a score (R-230, R-231).

Quoting makes FTS operators in a question plain words. The index contains text split on camelCase and snake_case, so the
words of a query are split the same way, each inside its quotes: a name becomes a phrase of its parts.
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


def full_text_query(text: str) -> str:
    """Return the FTS query that asks for every word of `text`; "" if it has none (R-230)."""
    return " AND ".join(f'"{word}"' for word in query_words(text))


def index_query(text: str) -> str:
    """Return the equivalent query for an index of split words: each word becomes a phrase of its parts (R-231).

    Words that the index omits are left out; "" if no word remains.
    """
    phrases = (" ".join(index_words(word)) for word in query_words(text))
    return " AND ".join(f'"{phrase}"' for phrase in phrases if phrase)


def text_score(bm25: float) -> float:
    """Return the score 0..1 of SQLite's `bm25()`, which is negative and smaller for a better match (R-231)."""
    raw = max(-bm25, 0.0)
    return raw / (1.0 + raw)
