"""Matches equal lines of two texts, in order, to find the lines of a reply that are lines of the file."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

_MAX_COMPARISONS = 1_000_000
"""Above this many pairs, only lines that occur once on both sides are compared: difflib's time is quadratic."""

Pairs = list[tuple[int, int]]


def matching_lines(old: Sequence[str], new: Sequence[str]) -> Pairs:
    """Return pairs of indices of equal lines, both ascending. Blank lines match only next to other matching lines."""
    shorter, head, tail = min(len(old), len(new)), 0, 0
    while head < shorter and old[head] == new[head]:
        head += 1
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle = _between(old[head : len(old) - tail], new[head : len(new) - tail])
    return [
        *((at, at) for at in range(head)),
        *((left + head, right + head) for left, right in middle),
        *((len(old) - at, len(new) - at) for at in range(tail, 0, -1)),
    ]


def _between(old: Sequence[str], new: Sequence[str]) -> Pairs:
    if not old or not new:
        return []
    if len(old) * len(new) > _MAX_COMPARISONS:
        return _around_unique_lines(old, new)
    blocks = SequenceMatcher(lambda line: not line, old, new, autojunk=False).get_matching_blocks()
    return [(block.a + at, block.b + at) for block in blocks for at in range(block.size)]


def _around_unique_lines(old: Sequence[str], new: Sequence[str]) -> Pairs:
    """Match the lines that occur once on both sides, and the equal lines directly above and below them."""
    found: Pairs = []
    for (above, above_new), (below, below_new) in pairwise([(-1, -1), *_unique(old, new), (len(old), len(new))]):
        left, right = above + 1, above_new + 1
        while left < below and right < below_new and old[left] == new[right]:
            found.append((left, right))
            left, right = left + 1, right + 1
        size = 0
        while left < below - size and right < below_new - size and old[below - 1 - size] == new[below_new - 1 - size]:
            size += 1
        found.extend((below - at, below_new - at) for at in range(size, 0, -1))
        if below < len(old):
            found.append((below, below_new))
    return found


def _unique(old: Sequence[str], new: Sequence[str]) -> Pairs:
    """Return the longest ascending chain of pairs of lines that occur once on both sides."""
    in_old, in_new = Counter(old), Counter(new)
    places = {line: at for at, line in enumerate(new) if line and in_new[line] == 1}
    pairs = [(at, places[line]) for at, line in enumerate(old) if in_old[line] == 1 and line in places]
    ends: list[int] = []
    of_end: list[int] = []
    before: list[int] = []
    for index, (_, right) in enumerate(pairs):
        size = bisect_left(ends, right)
        before.append(of_end[size - 1] if size else -1)
        ends[size : size + 1], of_end[size : size + 1] = [right], [index]
    chain: Pairs = []
    index = of_end[-1] if of_end else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]
