"""Reads the intact part of a JSON document that was truncated by an interrupted write or copy.

The outermost list that is still open keeps its complete elements; the incomplete last element is dropped, never shown
as if it were whole. An object loses its incomplete member. Nothing is guessed: the rest must be valid JSON.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, NamedTuple

from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex

_TOKEN = regex(r'"(?:[^"\\\n]|\\.)*+(?P<closed>")?|[][{},]')
_CLOSING = {"{": "}", "[": "]"}


class CutDocument(NamedTuple):
    """The intact value, the line on which the dropped part begins, and its name (`messages[3]`)."""

    value: Any
    line: int
    dropped: str


class _Open(NamedTuple):
    """A container that is still open: its start, the end of its last complete element, and its element count.

    `has_new`: the last element is already counted, although no comma has followed it.
    """

    bracket: str
    start: int
    end: int
    elements: int = 0
    has_new: bool = False


def read_cut_document(raw: bytes) -> CutDocument | None:
    """Return the intact part, or None if the document is not truncated or nothing in it is complete."""
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(raw)
    except UnicodeDecodeError:
        return None
    stack = _open_at_end(text)
    if not stack:
        return None
    depth = next((place for place, one in enumerate(stack) if one.bracket == "["), 0)
    kept = stack[: depth + 1]
    whole = text[: kept[-1].end] + "".join(_CLOSING[one.bracket] for one in reversed(kept))
    try:
        value = json.loads(whole)
    except NOT_READABLE:
        return None
    if not _holds_objects(value):
        return None
    rest = text[kept[-1].end :]
    begins = kept[-1].end + len(rest) - len(rest.lstrip(", \t\r\n"))
    if not rest.strip(", \t\r\n"):
        dropped = "the document"
    elif kept[-1].bracket == "[":
        dropped = f"{_name_before(text, kept[-1].start)}[{kept[-1].elements}]"
    else:
        dropped = "the last member"
    return CutDocument(value, text.count("\n", 0, begins) + 1, dropped)


def _open_at_end(text: str) -> list[_Open]:
    """Return the containers that are open at the end of the text, outermost first; [] for any other text."""
    stack: list[_Open] = []
    for token in _TOKEN.finditer(text):
        found, start, end = token[0], token.start(), token.end()
        if not stack and found not in _CLOSING:
            return []
        if found in _CLOSING:
            if not stack and text[:start].strip():
                return []
            stack.append(_Open(found, start, end))
        elif found in ("}", "]"):
            if _CLOSING[stack.pop().bracket] != found or not stack:
                return []
            stack[-1] = stack[-1]._replace(end=end, elements=stack[-1].elements + 1, has_new=True)
        elif found == ",":
            elements = stack[-1].elements + (not stack[-1].has_new)
            stack[-1] = stack[-1]._replace(end=start, elements=elements, has_new=False)
        elif found[0] == '"' and not token["closed"]:
            # In an unclosed string: the file ends in it, unless a line break interrupts it and the text continues.
            return [] if "\n" in text[start:].rstrip("\n") else stack
    return stack


def _holds_objects(value: Any) -> bool:
    """Return whether the value contains a list with an object in it: a message, or a step."""
    if isinstance(value, dict):
        return any(_holds_objects(one) for one in value.values())
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


def _name_before(text: str, place: int) -> str:
    """Return the key that precedes a container, or "" for the document itself."""
    found = re.search(r'"([^"\\\n]{1,60})"\s*:\s*$', text[max(0, place - 100) : place])
    return found[1] if found else ""
