"""Splits code into words: identifiers are split at camelCase and snake_case (R-231).

Index and query use the same function, so that `getUserName`, `get_user_name` and "user name" match. The words have no
punctuation: each is one token of SQLite's `unicode61`. Both leave out the most common words (`code_words.toml`): they
made up a quarter of the index and do not distinguish files.
"""

from __future__ import annotations

from functools import cache, lru_cache

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

MAX_WORD_CHARS = 64
_IDENTIFIER = regex(r"\w+")
_BORDER = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+")


@cache
def common_words() -> frozenset[str]:
    """Return the words that are neither indexed nor searched for."""
    return frozenset(word for words in package_table("formats/code_words.toml").values() for word in words.split())


def split_words(text: str) -> list[str]:
    """Return every word of a string in order, lower case: `parseHTTPReply_v2` → `parse http reply v2`."""
    return [word for identifier in _IDENTIFIER.findall(text) for word in _split(identifier)]


def index_words(text: str) -> list[str]:
    """Return the words of a string that the full-text index contains, in order and with repetitions."""
    return [word for identifier in _IDENTIFIER.findall(text) for word in _indexed(identifier)]


@lru_cache(maxsize=50_000)
def _split(identifier: str) -> tuple[str, ...]:
    return tuple(part[:MAX_WORD_CHARS].lower() for part in _BORDER.split(identifier) if part)


@lru_cache(maxsize=50_000)
def _indexed(identifier: str) -> tuple[str, ...]:
    common = common_words()
    return tuple(word for word in _split(identifier) if word not in common and not (len(word) == 1 and word.isascii()))
