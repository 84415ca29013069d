"""Shortens a long tool result for the model: head, tail, and how to read the rest (lesson 47).

Pure functions on text. The session stores the whole result; this version is computed once and never changes, so that
the provider's prompt cache stays valid.
"""

from __future__ import annotations

STORED_PREFIX = "stored:"
"""Path prefix with which `read_file` reads a stored result: `stored:<sha256>`."""

MIN_LIMIT_CHARS = 600
"""Minimum limit; a smaller one would leave hardly any text besides the note."""

_HEAD_SHARE = 0.6


def shorten(text: str, limit_chars: int, stored_as: str) -> str:
    """Return the text or, if it exceeds `limit_chars` characters, its head and tail with a note between them.

    The text is cut at line endings if that keeps at least half of each part, else within a line. `stored_as` is the
    sha256 of the stored text, or "" if it could not be stored.

    Raises:
        ValueError: `limit_chars` is below `MIN_LIMIT_CHARS`.
    """
    if limit_chars < MIN_LIMIT_CHARS:
        raise ValueError(f"limit_chars is {limit_chars}; it must be at least {MIN_LIMIT_CHARS}")
    if len(text) <= limit_chars:
        return text
    room = limit_chars - _longest_note(text, stored_as) - len("\n\n")
    head_end = _head_end(text, int(room * _HEAD_SHARE))
    tail_start = _tail_start(text, len(text) - (room - int(room * _HEAD_SHARE)))
    head, tail = text[:head_end], text[tail_start:]
    border = "" if head.endswith("\n") else "\n"
    return f"{head}{border}{_note(text, head_end, tail_start, stored_as)}\n{tail}"


def _head_end(text: str, at_most: int) -> int:
    border = text.rfind("\n", 0, at_most) + 1
    return border if border > at_most // 2 else at_most


def _tail_start(text: str, at_least: int) -> int:
    border = text.find("\n", at_least - 1) + 1
    size = len(text) - at_least
    return border if border and len(text) - border > size // 2 else at_least


def _note(text: str, head_end: int, tail_start: int, stored_as: str) -> str:
    """Return the note for the gap between two offsets; its lines and columns are 1-based, as in `read_file`."""
    lines = text.count("\n") + (not text.endswith("\n"))
    first = text.count("\n", 0, head_end) + 1
    last = text.count("\n", 0, tail_start - 1) + 1
    column = head_end - text.rfind("\n", 0, head_end) if first == last else None
    return _worded(tail_start - head_end, len(text), (first, last, lines), column, stored_as)


def _longest_note(text: str, stored_as: str) -> int:
    """Return the maximum length of the note for a result, in characters, with every number at its widest."""
    lines = text.count("\n") + 1
    return len(_worded(len(text), len(text), (lines, lines, lines), len(text), stored_as))


def _worded(left_out: int, total: int, lines: tuple[int, int, int], column: int | None, stored_as: str) -> str:
    first, last, count = lines
    where = f"start_line {first}, end_line {last}"
    if column is not None:
        where += f", start_column {column}"
    what = f"[… {left_out:,} of {total:,} characters are omitted here: lines {first:,} to {last:,} of {count:,}. "
    if not stored_as:
        return f"{what}They could not be stored either. …]"
    return (
        f'{what}The whole result is stored; read more of it with read_file, path "{STORED_PREFIX}{stored_as}", '
        f"{where}, in parts. …]"
    )
