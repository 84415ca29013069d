"""Neutralises instructions in text that is reused as our own, such as summaries and memories (R-242, R-433).

A summariser that obeyed its input could write "ignore all previous instructions …" into the summary, and the next model
would treat that as the user's words. Such phrases are replaced by a fixed marker; text that the user actually wrote
stays. Phrases in other languages are in a data file (`override_phrases.toml`). Invisible letters, letters that look
like Latin ones, and bold or code markup do not hide a phrase. This is not a defence by itself: approval of tools does
not depend on it. Code and files are never sanitised.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from codecompanion.formats.regex import regex

REMOVED = "[instruction found in the text left out]"
MAX_LENGTH = 8000

_OLD = r"all|any|every|previous|prior|above|earlier|preceding|foregoing|your|system|safety|other"
_OVERRIDE = regex(
    rf"\b(?:ignore|disregard|forget|override|bypass|do not follow|don't follow)\s+"
    rf"(?:(?:the|of|my|these|those|its)\s+)*(?:(?:{_OLD})\s+)(?:(?:{_OLD}|the|of|my|these|those|its)\s+)*"
    r"(?:instructions?|prompts?|rules|directions|directives|guidelines|guardrails|constraints|messages)\b"
    r"|\b(?:ignore|disregard|forget)\s+(?:everything|all|anything)\s+"
    r"(?:(?:that\s+)?(?:was|came|is)\s+)?(?:above|before\s+this|you\s+(?:were|have\s+been)\s+told|you\s+know)\b"
    r"|\b(?:new|updated|real|actual)\s+system\s+(?:prompt|instructions?)\s*:"
    r"|\bsystem\s+prompt\s+(?:override|is\s+now)\b"
    r"|\byou\s+are\s+now\s+(?:an?\s+)?(?:DAN\b|unrestricted\b|jailbroken\b|uncensored\b"
    r"|in\s+(?:developer|admin|god|debug|jailbreak)\s+mode\b|no\s+longer\s+bound\b)"
    r"|\b(?:pretend|act|behave)\s+(?:as\s+(?:if|though)\s+|like\s+)?(?:that\s+)?you\s+(?:are|were|have)\s+"
    r"(?:no\s+(?:rules|restrictions|guidelines)|unrestricted|jailbroken)\b",
    re.IGNORECASE,
)
_TEMPLATE = regex(r"\[/?INST\]|<\|/?(?:im_start|im_end|system|user|assistant|end|eot_id|start_header_id)\|>|<</?SYS>>")
_ROLE = regex(r"^[ \t]*(?:system|assistant|human)[ \t]*:|</?(?:system|assistant|human|user)(?:\s[^>]*)?>", re.I | re.M)


_INVISIBLE = regex(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
_HIDDEN_TEXT = regex("(?<![\U0001f3f4\U000e0000-\U000e007f])[\U000e0000-\U000e007f]+")
"""Matches invisible letters, except after a black flag, where they identify the flag."""
_LETTERS = str.maketrans(
    "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0443\u0445\u0410\u0412\u0421\u0415\u041d\u0406\u041a\u041c\u041e\u0420\u0405\u0422\u0423\u0425\u03bf\u03b1\u03b9\u03bd\u039f\u0391\u0399\u0395",
    "aceijopsyxABCEHIKMOPSTYXoaivOAIE",
)
"""Maps Cyrillic and Greek letters to the Latin letters they look like."""
_MARKUP = regex(r"[*`~]|(?<![^\W_])_|_(?![^\W_])")
"""Matches markup for bold, italics and code; an underscore inside a name does not count."""


@cache
def _look_alikes() -> dict[int, str | int]:
    """Return a map of look-alike characters to the Latin letters they resemble."""
    wide = (*range(0xFF01, 0xFF5F), *range(0x1D400, 0x1D800))
    plain = {letter: unicodedata.normalize("NFKC", chr(letter)) for letter in wide}
    return {**_LETTERS, **{letter: text for letter, text in plain.items() if len(text) == 1 and text.isascii()}}


@cache
def _phrases() -> re.Pattern[str]:
    """Return the pattern of all phrases in `override_phrases.toml`."""
    table = tomllib.loads(Path(__file__).parents[1].joinpath("override_phrases.toml").read_text("utf-8"))
    found = [phrase for language in table.values() for kind in language.values() for phrase in kind]
    return re.compile("|".join(phrase.replace(" ", r"\s+").replace(r"\s+?", r"\s*") for phrase in found), re.I | re.M)


def leave_out_orders(text: str, said: str = "") -> tuple[str, int]:
    """Return the text with instructions to a model replaced by the marker, and their number.

    `said`: the user's own text; phrases that occur in it stay, because users may write them.
    """
    text, count = _HIDDEN_TEXT.subn(REMOVED, text)
    orders = [(match, places) for reading, places in _readings(text) for match in _orders(reading)]
    known = _flat(_without(_INVISIBLE, said)[0]) if orders else ""
    spans = set[tuple[int, int]]()
    for match, places in orders:
        start, stop = match.span()
        if not (known and _flat(match.group()) in known):
            spans.add((places[start], places[stop - 1] + 1) if places else (start, stop))
    parts, end = [], 0
    for first, last in sorted(spans):
        if first >= end:
            parts += [text[end:first], REMOVED]
            end, count = last, count + 1
    return "".join((*parts, text[end:])), count


def _orders(text: str) -> list[re.Match[str]]:
    return [match for pattern in (_OVERRIDE, _TEMPLATE, _phrases()) for match in pattern.finditer(text)]


def _readings(text: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the possible readings of a string, with the original position of each letter, or [] if unchanged."""
    plain, places = _without(_INVISIBLE, text)
    yield plain, places
    latin = plain if plain.isascii() else plain.translate(_look_alikes())
    if latin != plain:
        yield latin, places
    bare, kept = _without(_MARKUP, latin)
    if kept:
        yield bare, [places[at] for at in kept] if places else kept


def _without(pattern: re.Pattern[str], text: str) -> tuple[str, list[int]]:
    """Return the text without some letters, and the original positions of the others; [] if nothing was removed."""
    parts, places, end = list[str](), list[int](), 0
    for match in pattern.finditer(text):
        parts.append(text[end : match.start()])
        places += range(end, match.start())
        end = match.end()
    if not end:
        return text, []
    return "".join((*parts, text[end:])), [*places, *range(end, len(text))]


def sanitise_memory(text: str, cap: int = MAX_LENGTH) -> str:
    """Return a memory for a model to read: normalised, without instructions and role markers, cut to `cap` characters.

    Applying it twice has no further effect (R-242).
    """
    text, before = unicodedata.normalize("NFKC", text), ""
    while before != text:
        before, text = text, _ROLE.sub(REMOVED, leave_out_orders(text)[0])
        if before == text:
            # The cut may shorten a word and so create an instruction.
            text = unicodedata.normalize("NFKC", text[:cap])[:cap]
    return text


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())
