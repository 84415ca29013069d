"""The unified diff that an approval shows, of two versions of one file. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import unified_diff
from itertools import takewhile

from codecompanion.formats.regex import regex
from codecompanion.formats.text_files import printable, split_lines

CONTEXT_LINES = 3
MAX_COMPARED_LINES = 4000
"""More changed lines than this are not compared one by one (difflib's time grows with their square)."""

_HUNK = regex(r"^@@ -(\d{1,15})((?:,\d+)?) \+(\d{1,15})((?:,\d+)?) @@")


def file_diff(path: str, before: str | None, after: str | None) -> str:
    """Return the diff of a file; None is a file that does not exist. Line ends do not show in it."""
    old = split_lines(printable(before or ""))
    new = split_lines(printable(after or ""))
    head = common_length(old, new)
    tail = common_length(old[head:][::-1], new[head:][::-1])
    start = max(0, head - CONTEXT_LINES)
    keep = max(0, tail - CONTEXT_LINES)
    names = (
        f"--- {'/dev/null' if before is None else 'a/' + path}",
        f"+++ {'/dev/null' if after is None else 'b/' + path}",
    )
    body = _hunks(old[start : len(old) - keep], new[start : len(new) - keep], start)
    return "\n".join((*names, *body)) + "\n"


def count_lines(diff: str) -> tuple[int, int]:
    """Return how many lines a diff of one file adds and removes."""
    body = diff.split("\n")[2:]
    return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)


def hunk_places(diff: str) -> list[int]:
    """Return the first changed line of each hunk, as the file is after it."""
    places: list[int] = []
    line = 0
    waits = False
    for row in diff.split("\n")[2:]:
        header = _HUNK.match(row)
        if header:
            line, waits = int(header[3]), True
        elif waits and row[:1] in "+-" and row:
            places.append(max(1, line))
            waits = False
        else:
            line += not row.startswith("-")
    return places


def without_hunk(before: str, after: str, hunk: int) -> str | None:
    """Return `after` with one place of its diff as it was before; None when there is no such place."""
    headers = [found for row in file_diff("", before, after).split("\n")[2:] if (found := _HUNK.match(row))]
    if not 0 <= hunk < len(headers):
        return None
    old_start, old_count, new_start, new_count = headers[hunk].groups()
    old, new = _lines_at(old_start, old_count), _lines_at(new_start, new_count)
    lines = after.split("\n")
    return "\n".join((*lines[: new.start], *split_lines(before)[old], *lines[new.stop :]))


def _lines_at(start: str, count: str) -> slice:
    """Return the lines that half a header names; of none it names the line above."""
    size = int(count[1:]) if count else 1
    first = int(start) - (1 if size else 0)
    return slice(first, first + size)


def common_length(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines are the same at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _hunks(old: list[str], new: list[str], offset: int) -> list[str]:
    if len(old) + len(new) > MAX_COMPARED_LINES:
        header = f"@@ -{offset + 1},{len(old)} +{offset + 1},{len(new)} @@"
        return [header, *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    found = list(unified_diff(old, new, lineterm="", n=CONTEXT_LINES))[2:]
    return [_shifted(line, offset) if line.startswith("@@ ") else line for line in found]


def _shifted(header: str, offset: int) -> str:
    def shift(match: re.Match[str]) -> str:
        old, old_count, new, new_count = match.groups()
        return f"@@ -{int(old) + offset}{old_count} +{int(new) + offset}{new_count} @@"

    return _HUNK.sub(shift, header)
