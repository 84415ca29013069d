"""The last tier: counts how many different words of the question appear in a string (R-234, R-235)."""

from __future__ import annotations

from codecompanion.retrieval.search.full_text_query import query_words

RESULTS = 5
"""Number of results of the cosine tier and this one (R-234)."""


def counted_terms(question: str) -> tuple[str, ...]:
    """Return the different lowercase words of a question that are longer than two characters, in order."""
    return tuple(dict.fromkeys(word for word in map(str.lower, query_words(question)) if len(word) > 2))
