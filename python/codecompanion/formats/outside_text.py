"""Lists the errors that parsing malformed external text may raise. Standard library and msgspec only.

A parser raises `RecursionError` for two thousand opening brackets, and may raise `MemoryError` for an endless number or
string: both are caused by the text and must not end the current operation.
"""

from __future__ import annotations

import re

import msgspec

from codecompanion.formats.regex import regex

NOT_READABLE = (msgspec.MsgspecError, ValueError, RecursionError, MemoryError)
"""The exceptions to catch whenever text from a model, a server, a file or a user is decoded, in any format."""

DEEPEST_JSON = 64
"""Maximum nesting depth of a tool call: no call needs more, and JSON parsers fail at some depth below a thousand."""
_ENDLESS_DIGITS = 400
_ENDLESS = regex(rf"\d{{{_ENDLESS_DIGITS}}}")
_STRINGS = regex(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)


def is_too_deep(text: str) -> bool:
    """Return whether a JSON document is nested too deep or has an endless number; reads it without recursion."""
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
