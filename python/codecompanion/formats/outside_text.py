"""What reading text from outside may raise: bad input, however it is bad. Standard library and msgspec only.

A parser that is given two thousand opening brackets raises `RecursionError`, one that is given a number or a string
without end may raise `MemoryError`: both are the text's fault, not ours, and must not end what is going on.
"""

from __future__ import annotations

import re

import msgspec

from codecompanion.formats.regex import regex

NOT_READABLE = (msgspec.MsgspecError, ValueError, RecursionError, MemoryError)
"""For `except` around every decode of what a model, a server, a file or a user has written, in whatever format."""

DEEPEST_JSON = 64
"""What a tool call may nest. Readers of JSON give up at some depth below a thousand; nobody needs more."""
_ENDLESS_DIGITS = 400
_ENDLESS = regex(rf"\d{{{_ENDLESS_DIGITS}}}")
_STRINGS = regex(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)


def is_too_deep(text: str) -> bool:
    """Return whether a JSON text is nested too deep or has a number without end; reads it without recursion."""
    is_endless = len(text) >= _ENDLESS_DIGITS and _ENDLESS.search(text) is not None
    if not is_endless and text.count("{") + text.count("[") <= DEEPEST_JSON:
        return False
    bare = _STRINGS.sub("", text)
    if is_endless and _ENDLESS.search(bare):
        return True
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", bare):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST_JSON:
            return True
    return False
