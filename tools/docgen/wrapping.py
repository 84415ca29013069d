"""Wraps lines of the help file to at most 78 columns, without breaking code between backticks."""

from __future__ import annotations

import re
import textwrap

WIDTH = 78
_CODE = re.compile(r"`[^`]{1,50}`")
_JOINT = "\N{NO-BREAK SPACE}"


def wrapped(text: str, first: int, rest: int | None = None) -> list[str]:
    """Return the text as lines; `first` is the indent of the first line, `rest` that of the following lines."""
    joined = _CODE.sub(lambda found: found[0].replace(" ", _JOINT), text)
    lines = textwrap.wrap(
        joined,
        WIDTH,
        initial_indent=" " * first,
        subsequent_indent=" " * (first if rest is None else rest),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_JOINT, " ") for line in lines]
