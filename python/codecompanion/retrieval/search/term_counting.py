"""Counts how many different words of the question appear in a string: the last search tier (R-234, R-235)."""

from __future__ import annotations

from codecompanion.retrieval.search.full_text_query import query_words

RESULTS = 5
"""Number of results returned by the cosine and term counting tiers (R-234)."""


def counted_terms(question: str) -> tuple[str, ...]:
    """Return the different lowercase words of a question that are longer than two characters, in order."""
    return tuple(dict.fromkeys(word for word in map(str.lower, query_words(question)) if len(word) > 2))
