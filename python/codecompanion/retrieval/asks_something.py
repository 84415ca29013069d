"""Decides whether a message asks for something; only then is the user told that no code was added (R-201).

"Thanks, that works" gets no code either, but no one expects any. The words are data (`asking.toml`). Pure.
"""

from __future__ import annotations

from functools import cache

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.retrieval.mentions import prose_of

MIN_WORDS = 3
"""Minimum words of a message that may be about code, unlike "go on" or "how so?"."""
_LOOKED_AT = 20_000
_MARK = regex(r"\?(?:[\s\"'”’)*_]|$)|[？؟]")
_WORD = regex(r"[^\W\d_]+")


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    asks: frozenset[str]
    small_talk: frozenset[str]


@cache
def _words() -> _Words:
    return typed.convert(package_table("retrieval/asking.toml"), _Words)


def small_talk() -> frozenset[str]:
    """Return the words that begin small talk."""
    return _words().small_talk


def asks_something(text: str) -> bool:
    """Return whether a message asks for something: it has a question mark, or begins with a question word or a request.

    Small talk does not count, whatever its punctuation: "thanks, is that all?".
    """
    said = prose_of(text[:_LOOKED_AT])
    words = [word.lower() for word in _WORD.findall(said)[:MIN_WORDS]]
    is_script_without_spaces = "？" in said
    if not words or words[0] in _words().small_talk:
        return False
    if len(words) < MIN_WORDS and not is_script_without_spaces:
        return False
    return bool(_MARK.search(said)) or words[0] in _words().asks
