"""Selects exactly the lines of a file that the user named, as in `@a.py:10-20` (R-213)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.formats.plural import counted
from codecompanion.model.gathered import NAMED_LINES, NamedLines, Snippet
from codecompanion.retrieval.line_runs import joined_runs
from codecompanion.retrieval.smart_snippets import split_lines


def named_lines(whole: Snippet, wanted: Sequence[NamedLines]) -> tuple[list[Snippet], list[str]]:
    """Return the requested lines of a file, without duplicates, and notes on requested lines that do not exist.

    Reversed ranges are swapped; ranges that extend beyond the file are clipped, with a note.
    """
    lines = split_lines(whole.text)
    count = len(lines)
    runs, notes = list[tuple[int, int]](), list[str]()
    for one in wanted:
        start, end = sorted((one.start, one.end))
        written = f"@{one.name}:{one.start}" + (f"-{one.end}" if one.end != one.start else "")
        if start > count or end < 1:
            notes.append(f"{written} was not read: {_why(whole, start > count, count)}.")
            continue
        shown = (max(1, start), min(end, count))
        if shown != (start, end):
            notes.append(f"Only lines {shown[0]}-{shown[1]} of {written} were read: {_why(whole, end > count, count)}.")
        runs.append(shown)
    return [_part(whole, lines, start, end) for start, end in joined_runs(runs)], notes


def _why(whole: Snippet, is_beyond: bool, count: int) -> str:
    return f"{whole.path} has {counted(count, 'line')}" if is_beyond else "the first line is 1"


def _part(whole: Snippet, lines: Sequence[str], start: int, end: int) -> Snippet:
    text = "\n".join(lines[start - 1 : end])
    return msgspec.structs.replace(whole, start=start, end=end, text=text, kind=NAMED_LINES)
