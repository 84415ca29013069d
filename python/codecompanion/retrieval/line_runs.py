"""Computes runs of lines: for snippets that are only partly shown or needed, and for places in a file.

Line numbers are 1-based; both ends are included.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby

import msgspec

from codecompanion.model.gathered import Snippet


def numbered_lines(one: Snippet) -> list[tuple[int, str]]:
    """Return the lines of a snippet with their numbers, or [] if the text does not match its line range."""
    count, lines = one.end - one.start + 1, one.text.split("\n")
    if len(lines) == count + 1 and not lines[-1]:
        lines = lines[:-1]
    return list(enumerate(lines, one.start)) if len(lines) == count else []


def part_of(one: Snippet, taken: Sequence[tuple[int, str]]) -> Snippet | None:
    """Return the given lines of a snippet without blank lines at either end, or None if no content remains."""
    says = [place for place, (_, line) in enumerate(taken) if line.strip()]
    if not any(map(str.isalnum, "".join(taken[place][1] for place in says))):
        return None
    first, last = says[0], says[-1]
    text = "\n".join(line for _, line in taken[first : last + 1])
    return msgspec.structs.replace(one, start=taken[first][0], end=taken[last][0], text=text)


def runs_of(one: Snippet, numbers: Collection[int]) -> list[Snippet]:
    """Return the runs of the given lines in a snippet, without runs that have no content."""
    if all(number in numbers for number in range(one.start, one.end + 1)):
        return [one]
    runs = groupby(numbered_lines(one), lambda pair: pair[0] in numbers)
    return [part for is_in, run in runs if is_in and (part := part_of(one, list(run))) is not None]


def not_shown(one: Snippet, shown: set[int]) -> list[Snippet]:
    """Return the runs of a snippet's lines that are not shown yet, without runs that have no content."""
    own = range(one.start, one.end + 1)
    return [one] if shown.isdisjoint(own) else runs_of(one, set(own) - shown)


def joined_runs(runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return line ranges from top to bottom; overlapping and adjacent ranges are merged."""
    joined = list[tuple[int, int]]()
    for start, end in sorted(runs):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
