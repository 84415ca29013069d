"""Finds forms of questions: "where are … …ed" asks about a project, "how do you …" is a general question.

A form is a word, two adjacent words, or the first two words of a question; each topic word is replaced by its type. The
weights of the forms are fitted (bench/fit_forms.py). Pure; the words are data (ours).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

START, END = "^", "$"
_MAX_CHARS, _MAX_WORDS = 400, 40
_WORD = regex(r"\w++(?:[./]\w++)*+")
_CODE = regex(r"_|[a-z0-9][A-Z]|\w[./]\w")
_MIN_INFLECTED = 5


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kept: str
    participles: str
    technologies: str


def forms_of(text: str) -> frozenset[str]:
    """Return the forms of a question: `where`, `are S`, `^ where are`."""
    kinds = [START, *map(_kind, _WORD.findall(text[:_MAX_CHARS])[:_MAX_WORDS]), END]
    return frozenset({*kinds[1:-1], *map(" ".join, pairwise(kinds)), " ".join(kinds[:3])})


@cache
def technologies() -> frozenset[str]:
    """Return the names of languages, frameworks and systems."""
    return frozenset(_words().technologies.split())


def _kind(word: str) -> str:
    lowered = word.lower()
    if lowered in _kept():
        return lowered
    if _CODE.search(word):
        return "CODE"
    if lowered.isdigit():
        return "NUM"
    is_long = len(lowered) >= _MIN_INFLECTED
    if is_long and lowered.endswith("ing"):
        return "ING"
    if (is_long and lowered.endswith("ed")) or lowered in _participles():
        return "ED"
    if len(lowered) >= _MIN_INFLECTED - 1 and lowered.endswith("s") and not lowered.endswith("ss"):
        return "S"
    return "LY" if lowered.endswith("ly") else "X"


@cache
def _words() -> _Words:
    return typed.convert(package_table("retrieval/question_forms.toml"), _Words)


@cache
def _kept() -> frozenset[str]:
    return frozenset(_words().kept.split())


@cache
def _participles() -> frozenset[str]:
    return frozenset(_words().participles.split())
