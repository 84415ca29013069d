"""Creates and edits unified diffs of two versions of one file, as shown in approvals. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import unified_diff
from itertools import takewhile

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.formats.text_files import printable, split_lines

CONTEXT_LINES = 3
MAX_COMPARED_LINES = 4000
"""Maximum number of changed lines to compare line by line (difflib's time grows with the square of this number)."""

_MAX_TEXT, _GOES = 120, "− "
_HUNK = regex(r"^@@ -(\d{1,15})((?:,\d+)?) \+(\d{1,15})((?:,\d+)?) @@")


def file_diff(path: str, before: str | None, after: str | None) -> str:
    """Return the diff of a file; None means that the file does not exist. The diff does not show line endings."""
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
    body = _with_context(body, old[max(0, start - CONTEXT_LINES) : start], old[len(old) - keep :][:CONTEXT_LINES])
    return "\n".join((*names, *body)) + "\n"


def count_lines(diff: str) -> tuple[int, int]:
    """Return the numbers of lines that a diff of one file adds and removes."""
    body = diff.split("\n")[2:]
    return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)


class Hunk(msgspec.Struct):
    """One hunk of a diff: its first changed line in the new file, and the number of lines added and removed.

    `text` is the first non-blank added line or, if there is none, the first removed line after a minus sign.
    """

    line: int
    added: int = 0
    removed: int = 0
    text: str = ""


def hunks_of(diff: str) -> list[Hunk]:
    """Return the hunks of the diff of one file, from top to bottom."""
    found: list[Hunk] = []
    line, waits = 0, False
    for row in diff.split("\n")[2:]:
        header = _HUNK.match(row)
        if header:
            line, waits = int(header[3]), True
            continue
        if row[:1] in ("+", "-"):
            if waits:
                found.append(Hunk(max(1, line)))
                waits = False
            if found:
                _take(row, found[-1])
        line += not row.startswith("-")
    return found


def _take(row: str, hunk: Hunk) -> None:
    """Count a line of a hunk, and use it as the hunk's text if it is suitable and none better was found before."""
    is_added, text = row[0] == "+", row[1:].strip()[:_MAX_TEXT]
    hunk.added += is_added
    hunk.removed += not is_added
    if text and (not hunk.text or (is_added and hunk.text.startswith(_GOES))):
        hunk.text = text if is_added else _GOES + text


def without_hunk(before: str, after: str, hunk: int) -> str | None:
    """Return `after` with one hunk of its diff reverted; None if the hunk does not exist."""
    headers = [found for row in file_diff("", before, after).split("\n")[2:] if (found := _HUNK.match(row))]
    if not 0 <= hunk < len(headers):
        return None
    old_start, old_count, new_start, new_count = headers[hunk].groups()
    old, new = _lines_at(old_start, old_count), _lines_at(new_start, new_count)
    lines = after.split("\n")
    return "\n".join((*lines[: new.start], *split_lines(before)[old], *lines[new.stop :]))


def _lines_at(start: str, count: str) -> slice:
    """Return the lines that one side of a hunk header refers to; an empty range refers to the line above."""
    size = int(count[1:]) if count else 1
    first = int(start) - (1 if size else 0)
    return slice(first, first + size)


def common_length(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of equal lines at the start of both sequences."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _hunks(old: list[str], new: list[str], offset: int) -> list[str]:
    if len(old) + len(new) > MAX_COMPARED_LINES:
        header = f"@@ -{offset + 1},{len(old)} +{offset + 1},{len(new)} @@"
        return [header, *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    found = list(unified_diff(old, new, lineterm="", n=CONTEXT_LINES))[2:]
    return [_shifted(line, offset) if line.startswith("@@ ") else line for line in found]


def _with_context(body: list[str], above: list[str], below: list[str]) -> list[str]:
    """Add missing context to the first and last hunk, using the lines around the compared ones.

    A change may be at the edge of the compared lines, and `patch` treats missing context as the edge of the file.
    """
    if not body:
        return body
    last = max(index for index, line in enumerate(body) if line.startswith("@@ "))
    lacks = CONTEXT_LINES - sum(1 for _ in takewhile(lambda line: line[:1] == " ", reversed(body[last + 1 :])))
    added = [f" {line}" for line in below[: max(0, lacks)]]
    body = [*body[:last], _shifted(body[last], 0, len(added)), *body[last + 1 :], *added]
    lacks = CONTEXT_LINES - sum(1 for _ in takewhile(lambda line: line[:1] == " ", body[1:]))
    added = [f" {line}" for line in above[len(above) - max(0, lacks) :]] if lacks > 0 else []
    return [_shifted(body[0], -len(added), len(added)), *added, *body[1:]]


def _shifted(header: str, offset: int, longer: int = 0) -> str:
    """Shift a hunk header by `offset` lines, and lengthen both sides by `longer` lines."""

    def side(start: str, count: str) -> str:
        size = int(count[1:]) if count else 1
        first = int(start) + offset + (1 if longer and not size else 0)  # an empty range refers to the line above
        return f"{first},{size + longer}" if longer else f"{first}{count}"

    def shift(match: re.Match[str]) -> str:
        old, old_count, new, new_count = match.groups()
        return f"@@ -{side(old, old_count)} +{side(new, new_count)} @@"

    return _HUNK.sub(shift, header)
