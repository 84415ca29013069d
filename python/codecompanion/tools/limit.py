"""What the model sees of a long tool result: head, tail, and how to read the rest (lesson 47).

Pure text in, text out. The whole result is stored by the session; this is made once and never changes, so that the
provider's prompt cache stays valid.
"""

from __future__ import annotations

STORED_PREFIX = "stored:"
"""`read_file` reads the stored result `stored:<sha256>`."""

MIN_LIMIT_CHARS = 600
"""Below this there would be hardly anything beside the note."""

_HEAD_SHARE = 0.6


def shorten(text: str, limit_chars: int, stored_as: str) -> str:
    """Return the text, or its head and tail with a note between them, at most `limit_chars` characters.

    Cut at line borders where that keeps at least half of each end, else within a line. `stored_as` is the sha256 of
    the stored whole.

    Raises:
        ValueError: `limit_chars` is below `MIN_LIMIT_CHARS`.
    """
    if limit_chars < MIN_LIMIT_CHARS:
        raise ValueError(f"limit_chars is {limit_chars}; it must be at least {MIN_LIMIT_CHARS}")
    if len(text) <= limit_chars:
        return text
    # The note's length depends on the figures in it, which are never wider than with everything left out.
    room = limit_chars - len(_note(text, 0, len(text), stored_as)) - 2
    head_end = _head_end(text, int(room * _HEAD_SHARE))
    tail_start = _tail_start(text, len(text) - (room - int(room * _HEAD_SHARE)))
    head, tail = text[:head_end], text[tail_start:]
    before = "" if head.endswith("\n") or not head else "\n"
    return f"{head}{before}{_note(text, head_end, tail_start, stored_as)}\n{tail}"


def _head_end(text: str, at_most: int) -> int:
    border = text.rfind("\n", 0, at_most) + 1
    return border if border > at_most // 2 else at_most


def _tail_start(text: str, at_least: int) -> int:
    border = text.find("\n", at_least - 1) + 1
    size = len(text) - at_least
    return border if border and len(text) - border > size // 2 else at_least


def _note(text: str, head_end: int, tail_start: int, stored_as: str) -> str:
    """Return the note for the gap between two offsets; its lines and columns are 1-based, as `read_file` takes them."""
    path = f"{STORED_PREFIX}{stored_as}"
    left_out = tail_start - head_end
    lines = text.count("\n") + (not text.endswith("\n"))
    first = text.count("\n", 0, head_end) + 1
    last = text.count("\n", 0, tail_start - 1) + 1 if tail_start else 1
    how = f"start_line {first} and end_line {last}"
    if first == last:
        column = head_end - (text.rfind("\n", 0, head_end) + 1) + 1
        how = f"start_line {first}, end_line {first} and start_column {column}"
    return (
        f"[… {left_out:,} of {len(text):,} characters are left out here: lines {first:,} to {last:,} of {lines:,}. "
        f'The whole result is stored; read more of it with read_file, path "{path}", {how}, in parts. …]'
    )
