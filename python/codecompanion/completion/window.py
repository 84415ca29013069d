"""Cuts the text around the cursor (R-256): 2,000 tokens before and 500 after it, at four characters each."""

from __future__ import annotations

import msgspec

from codecompanion.errors import InputError

PREFIX_CHARS = 8_000
SUFFIX_CHARS = 2_000


class Window(msgspec.Struct, frozen=True):
    """A file split around the cursor: `above` + `prefix` + `suffix` + `below` is the whole text."""

    above: str
    prefix: str
    suffix: str
    below: str


def cut_window(before: str, after: str, *, prefix: int = PREFIX_CHARS, suffix: int = SUFFIX_CHARS) -> Window:
    """Return the window of a file, given its text before and after the cursor; cut between any two characters."""
    start = max(0, len(before) - prefix)
    return Window(before[:start], before[start:], after[:suffix], after[suffix:])


def split_at(text: str, line: int, column: int) -> tuple[str, str]:
    """Return the text before and after a position: `line` is 0-based, `column` is a 0-based byte offset in UTF-8.

    Only a line feed ends a line, and the last line feed is followed by one more line. A position may be before or after
    a carriage return.

    Raises:
        InputError: the line does not exist, or the column is beyond it or inside a character; the message says which.
    """
    start = _line_start(text, line)
    end = text.find("\n", start)
    content = text[start:] if end < 0 else text[start:end]
    encoded = content.encode("utf-8", "surrogatepass")
    if not 0 <= column <= len(encoded):
        raise InputError(f"column {column} is beyond line {line}, which has {len(encoded)} bytes")
    try:
        index = start + len(encoded[:column].decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise InputError(f"column {column} of line {line} is inside a character") from error
    return text[:index], text[index:]


def _line_start(text: str, line: int) -> int:
    last = text.count("\n")
    if not 0 <= line <= last:
        raise InputError(f"line {line} is beyond the text, which has lines 0 to {last}")
    start = 0
    for _ in range(line):
        start = text.index("\n", start) + 1
    return start
