"""Parses token counts as people write them in settings and arguments: `16000`, `16k`, `1M` (R-102).

`k` is 1,000 and `M` 1,000,000: in model cards `128k` means 128,000. Unreadable values are never guessed.
"""

from __future__ import annotations

import re

from codecompanion.formats.regex import regex

TOKEN_FORMS = 'a number of tokens, such as 16000, "16k" or "1M"'  # noqa: S105 - no password
_FORM = regex(r"(\d{1,15})([km]?)", re.ASCII | re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_MAX_WHOLE = 2**53


def parse_tokens(text: str) -> int:
    """Return the token count written in a string.

    Raises:
        ValueError: the text is not a token count, or is 0.
    """
    found = _FORM.fullmatch(text)
    tokens = int(found[1]) * _UNITS[found[2].lower()] if found else 0
    if tokens < 1:
        raise ValueError(f"{text!r} is not a number of tokens; expected {TOKEN_FORMS}")
    return tokens


def is_short_form(value: object) -> bool:
    """Return whether the value is a string with a unit; only token counts are written this way."""
    return isinstance(value, str) and value[-1:] in ("k", "K", "m", "M") and _FORM.fullmatch(value) is not None


def tokens_of(value: object) -> int | None:
    """Return the token count in a configured number or string, or None if it is not a token count."""
    if isinstance(value, str):
        try:
            return parse_tokens(value)
        except ValueError:
            return None
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value >= 1 and value % 1 == 0
    return int(value) if whole and isinstance(value, int | float) and value < _MAX_WHOLE else None
