"""Compares the meaning of two sentences, so that a summary states a fact only once (R-319, R-320)."""

from __future__ import annotations

import msgspec

from codecompanion.formats.regex import regex

_MARKS = str.maketrans("", "", '`*"“”„«»')
_WORD = regex(r"\w+(?:[.'-]\w+)*")
_ENDING = regex(r"(?<=\w{3})(?:ing|ed|es|s|e)$")
_REASON = regex(r"(?<!\s),?\s+(?:because|since|so that)\s")
_NEGATION = frozenset(
    "not no never without against don't dont won't can't cannot mustn't shouldn't isn't nothing".split()
)
_EMPTY = frozenset(
    "a an the and or but so of to for in on at by with from as into over this that these those it its is are"
    " was were be been am i we you he she they my our your their me us will shall would should must can could"
    " may have has had do does did now then next later after afterwards also just only all therefore finally"
    " already i'll we'll i'm we're i've we've it's let's that's going go goes went gone stick use used uses"
    " using decided decide decision chose chosen choose picked opted settled agreed adopt please need needs"
    " want plan step steps still waiting wait blocked until there here out up if when".split()
)
_ENOUGH = 0.6
"""Minimum share of the words of the longer fact that the shorter fact must contain."""


class Meaning(msgspec.Struct, frozen=True):
    """The comparable part of a sentence: its words without common ones, and whether it is negated."""

    words: frozenset[str]
    negates: bool
    text: str


def normal(text: str) -> str:
    """Return the text normalised for comparison: without case, marks around words, and final punctuation."""
    bare = " ".join(text.casefold().replace("’", "'").translate(_MARKS).split()).strip(" .,;:!?-–…")
    return bare or text


def meaning_of(text: str) -> Meaning:
    """Return the comparable part of a sentence, without any reason that follows."""
    plain = normal(text)
    said = _WORD.findall(_REASON.split(plain, maxsplit=1)[0])
    words = frozenset(_ENDING.sub("", word) for word in said if word not in _EMPTY and word not in _NEGATION)
    return Meaning(words, not _NEGATION.isdisjoint(said), plain)


def is_same_fact(one: Meaning, other: Meaning) -> bool:
    """Return whether both state the same fact: similar words, one set within the other, both or neither negated."""
    if one.text == other.text:
        return True
    shorter, longer = sorted((one.words, other.words), key=len)
    same = bool(shorter) and shorter <= longer and len(shorter) >= _ENOUGH * len(longer)
    return same and one.negates == other.negates
