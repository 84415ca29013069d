"""Fit a transcript into a number of characters (R-439): what is newest matters, and what the user said.

Whole entries are left out, never the first and never the newest; a marker says how many. The user's go last.
"""

from __future__ import annotations

from collections.abc import Sequence

_MARKER = "[messages left out: {count}]"
# A marker with a number of six digits and its newline.
_MARKER_CHARS = len(_MARKER.format(count=999_999)) + 1


def fit_entries(entries: tuple[str, ...], spoken: Sequence[bool], limit: int) -> tuple[str, ...]:
    """Return entries that take at most `limit` characters, newlines between them included.

    `spoken` says which are the user's. When nothing more can be left out, first and newest are cut at their ends.
    """
    size = sum(len(entry) + 1 for entry in entries)
    if size <= limit:
        return entries
    left_out = [False] * len(entries)
    middle = range(1, len(entries) - 1)
    order = [i for i in middle if not spoken[i]] + [i for i in middle if spoken[i]]
    for index in order:
        if size <= limit:
            break
        beside = left_out[index - 1] + left_out[index + 1]
        left_out[index] = True
        size += _MARKER_CHARS * (1 - beside) - len(entries[index]) - 1
    fitted = _with_markers(entries, left_out)
    return fitted if size <= limit else _cut(fitted, limit)


def _with_markers(entries: tuple[str, ...], left_out: list[bool]) -> tuple[str, ...]:
    told: list[str] = []
    missing = 0
    for entry, out in zip(entries, left_out, strict=True):
        if out:
            missing += 1
            continue
        if missing:
            told.append(_MARKER.format(count=missing))
            missing = 0
        told.append(entry)
    return tuple(told)


def _cut(entries: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """Return the entries, each cut to its share of the limit; short ones leave theirs to the others."""
    room, left = limit - len(entries), len(entries)
    cut: dict[int, str] = {}
    for index in sorted(range(len(entries)), key=lambda i: len(entries[i])):
        share = max(0, room // left)
        cut[index] = entries[index][:share]
        room, left = room - len(cut[index]), left - 1
    return tuple(cut[index] for index in range(len(entries)))
