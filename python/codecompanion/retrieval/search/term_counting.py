"""The last tier: how many different words of the question stand in a text (R-234, R-235)."""

from __future__ import annotations

from collections.abc import Iterable

from codecompanion.retrieval.search.full_text_query import query_words

RESULTS = 5
"""What the cosine tier and this one give (R-234)."""


def counted_terms(question: str) -> tuple[str, ...]:
    """Return the different lowercase words of a question that are longer than two characters, in order."""
    return tuple(dict.fromkeys(word for word in map(str.lower, query_words(question)) if len(word) > 2))


def count_terms(terms: Iterable[str], text: str) -> int:
    """Return how many of the terms `text` contains, whatever their case."""
    lowered = text.lower()
    return sum(term in lowered for term in terms)


def term_score(count: int, terms: int) -> float:
    """Return the count as a score 0..1: the share of the terms that were found."""
    return count / terms if terms else 0.0
