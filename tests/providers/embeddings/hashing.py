"""Vectors without a model: hashed words, the same everywhere. Texts with common words have similar vectors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from hashlib import blake2b

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
# Different names for one thing in a question and in code: the part that words alone do not cover.
SYNONYMS = {"fetch": "load", "read": "load", "auth": "login", "signin": "login", "crash": "error", "exception": "error"}


def hashed_vector(text: str, width: int = 32) -> list[float]:
    """Return a vector of length 1: each word adds to two components; a text without words gets the first axis."""
    vector = [0.0] * width
    for word in _words(text):
        digest = blake2b(word.encode(), digest_size=4).digest()
        vector[digest[0] % width] += 1.0 if digest[1] & 1 else -1.0
        vector[digest[2] % width] += 1.0 if digest[3] & 1 else -1.0
    length = math.sqrt(sum(number * number for number in vector))
    if not length:
        vector[0] = length = 1.0
    return [number / length for number in vector]


def _words(text: str) -> Iterable[str]:
    for match in _WORD.finditer(text):
        word = match[0].lower()
        yield SYNONYMS.get(word, word)
