"""Finds the search terms for a question, by the simple method or from a model's reply (R-219, R-220)."""

from __future__ import annotations

from functools import cache

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

MAX_TERMS = 10
MIN_LENGTH = 3
MAX_QUESTION_CHARS = 20_000
"""Maximum number of characters to read of a question: the beginning of a pasted log shows the topic."""
_NO_WORD = regex(r"[^a-z0-9_\s]")
_MODEL_NOISE = regex(r"^[\s\-*•\d.)\"'`]+|[\s\"'`.]+$")
MAX_TERM_CHARS = 80


def simple_terms(question: str) -> tuple[str, ...]:
    """Return at most ten words of the question that are worth searching for, in order, lower case."""
    words = _NO_WORD.sub(" ", question[:MAX_QUESTION_CHARS].lower()).split()
    wanted = (word for word in words if len(word) >= MIN_LENGTH and word not in _stop_words())
    return tuple(dict.fromkeys(wanted))[:MAX_TERMS]


def says_something(words: str) -> bool:
    """Return whether the text is worth searching for; text in a non-Latin script is, although it yields no terms."""
    return any(letter.isalpha() and not letter.isascii() for letter in words) or bool(simple_terms(words))


def model_terms(reply: str) -> tuple[str, ...]:
    """Return the comma-separated terms in a model's reply, at most ten; () if the reply is not a list."""
    text = reply.replace("```", " ").strip()
    found = (_MODEL_NOISE.sub("", part) for part in text.replace("\n", ",").split(","))
    terms = tuple(dict.fromkeys(term for term in found if 1 < len(term) <= MAX_TERM_CHARS and len(term.split()) <= 3))
    return terms[:MAX_TERMS] if len(terms) > 1 else ()


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(package_table("retrieval/question_words.toml")["stop_words"].split())
