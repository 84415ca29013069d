"""Converts function names to a form that all providers accept: up to 64 letters, digits, `_` and `-`.

Other systems allow more characters (dots, slashes), and a history may come from such a system.
"""

from __future__ import annotations

from codecompanion.formats.regex import regex

MAX_NAME_LENGTH = 64
_NOT_IN_NAMES = regex(r"[^A-Za-z0-9_-]")


def function_name(name: str) -> str:
    """Return the name with unsupported characters replaced by `_`, truncated if it is too long."""
    return _NOT_IN_NAMES.sub("_", name)[:MAX_NAME_LENGTH] or "unnamed"
