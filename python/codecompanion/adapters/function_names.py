"""Names of functions as all providers take them: up to 64 letters, digits, `_` and `-`.

Other systems allow more (dots, slashes), and a history can come from one of them.
"""

from __future__ import annotations

from codecompanion.formats.regex import regex

MAX_NAME_LENGTH = 64
_NOT_IN_NAMES = regex(r"[^A-Za-z0-9_-]")


def function_name(name: str) -> str:
    """Return the name with `_` in place of what no provider takes, cut where it is too long."""
    return _NOT_IN_NAMES.sub("_", name)[:MAX_NAME_LENGTH] or "unnamed"
