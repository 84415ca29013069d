"""Removes surrounding lines that a reply repeats, but keeps lines of the edit that look like them.

A reply that ends with `return nil` and `}` may repeat two lines from below the region, keep two lines of the region, or
add an early return; all look identical. Lines that can be part of the edit stay, because a duplicate is easily seen in
the proposal and a missing line is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from codecompanion.edit_in_place.indentation import columns, lead_of, opens_block
from codecompanion.edit_in_place.matching import matching_lines
from codecompanion.edit_in_place.place import Placement, is_blank
from codecompanion.edit_in_place.quoted import quoted
from codecompanion.wire.requests import EditPlace

_MIN_ALONE = 8
"""Minimum length of a single repeated line that counts as a certain repetition; `}` or `end` could be intended."""
_WORD = re.compile(r"\w\w")
_ENDS = re.compile(r"\s*+(?:\W{1,40}$|</|[\\#]?end|(?:fi|done|esac)\b)", re.IGNORECASE)
"""Matches lines that can end a block."""


def without_surroundings(lines: tuple[str, ...], place: EditPlace, placement: Placement) -> tuple[str, ...]:
    """Return the lines of a reply without the surrounding lines that it repeats."""
    before, after, region = place.before, place.after, place.region
    if placement == "after":
        before, region = (*before, *region), ()
    elif placement == "before":
        after, region = (*region, *after), ()
    head, tail = _repeated(lines, before, after, region, str.rstrip)
    if not _is_sure(head, tail):
        head, tail = _repeated(lines, before, after, region, str.strip)
    none = _Overlap()
    file = (*before[len(before) - head.size :], *region, *after[: tail.size])
    if tail.size and _is_of_another_block(lines, file, head.size, tail.size):
        tail = none
    for above, below in dict.fromkeys(((head, tail), (head, none), (none, tail))):
        if _is_sure(above, below) and (rest := _between(lines, above, below, region)) is not None:
            return rest
    without_tail = lines[: len(lines) - tail.size]
    is_repeated = not all(map(is_blank, without_tail)) and _is_balanced(without_tail, lines, region)
    return without_tail if is_repeated else lines


class _Overlap(msgspec.Struct, frozen=True):
    """The number of repeated lines, and whether they are too many or too long to be an accident."""

    size: int = 0
    is_sure: bool = False


def _is_sure(head: _Overlap, tail: _Overlap) -> bool:
    """Return whether surrounding lines are certainly repeated: certain on one side, or any on both sides."""
    return head.is_sure or tail.is_sure or (head.size > 0 and tail.size > 0)


def _between(lines: tuple[str, ...], head: _Overlap, tail: _Overlap, region: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the lines between a repeated head and tail; None if the head or the tail can be part of the edit."""
    last = len(lines) - tail.size
    rest = lines[head.size : last]
    if head.size > last or (all(map(is_blank, rest)) and not (head.size and tail.size)):
        return None  # the reply would be empty
    are_brackets = not any(_WORD.search(line) for line in (*lines[: head.size], *lines[last:]))
    if are_brackets and _is_balanced(lines, rest, region):
        return None
    if _count_quoted(rest, region) < _count_quoted(lines, region) and not _is_balanced(rest, lines, region):
        return None  # these are lines of the region
    return rest


def _count_quoted(lines: tuple[str, ...], region: tuple[str, ...]) -> int:
    """Return how many lines of the region the reply has, in order, with any indentation."""
    texts = [line.strip() for line in lines]
    return sum(texts[new] != "" for _, new in matching_lines([line.strip() for line in region], texts))


# ---- blocks of the edit


def _is_of_another_block(lines: tuple[str, ...], file: tuple[str, ...], head: int, tail: int) -> bool:
    """Return whether any line of the tail is in a different block in the reply than in `file`.

    `file`: the repeated lines and the region between them. `head`, `tail`: the number of repeated lines. If the reply
    uses the file's indentation, only a block of new lines at the end counts: wrapping moves other blocks.
    """
    start = len(lines) - tail
    blocks, old_blocks = _block_starts(lines), _block_starts(file)
    found = quoted(lines[:start], file[: len(file) - tail])
    first = next((at for at, line in enumerate(lines) if not is_blank(line)), -1)
    last = max((at for at, partner in enumerate(found.partner) if partner >= 0), default=-1)
    is_indented_as = _is_indented_as(lines, file, head, tail)
    for block, old in zip(blocks[start:], old_blocks[len(file) - tail :], strict=True):
        if not 0 <= block < start or (old >= 0 and found.place[block] == old):
            continue
        opens = opens_block(lines[block])
        has_lost_lead = block == first and not lead_of(lines[block])
        if (opens and block > last) if is_indented_as else (opens or not has_lost_lead):
            return True
    return False


def _is_indented_as(lines: tuple[str, ...], file: tuple[str, ...], head: int, tail: int) -> bool:
    """Return whether the repeated lines, and most region lines if there is no head, are indented as in `file`."""
    pairs = [*zip(file[:head], lines[:head], strict=True), *zip(file[-tail:], lines[-tail:], strict=True)]
    if any(lead_of(old) != lead_of(new) for old, new in pairs if not is_blank(old)):
        return False
    if head:
        return True
    said, there = lines[:-tail], file[:-tail]
    same = [
        lead_of(there[old]) == lead_of(said[new])
        for old, new in matching_lines([line.strip() for line in there], [line.strip() for line in said])
        if lead_of(there[old]) and not is_blank(said[new])
    ]
    return 2 * sum(same) > len(same)


def _block_starts(lines: tuple[str, ...]) -> list[int]:
    """Return for each line the index of the line that begins its block, or the block that it ends; -1 if none."""
    found: list[int] = []
    above: list[tuple[int, int]] = []
    for at, line in enumerate(lines):
        if is_blank(line):
            found.append(-1)
            continue
        depth = columns(lead_of(line))
        while above and above[-1][1] > depth:
            above.pop()
        level = above.pop()[0] if above and above[-1][1] == depth else -1
        is_end = level >= 0 and _ENDS.match(line) is not None and opens_block(lines[level])
        found.append(level if is_end else above[-1][0] if above else -1)
        above.append((at, depth))
    return found


# ---- equal lines


def _repeated(
    lines: tuple[str, ...],
    before: tuple[str, ...],
    after: tuple[str, ...],
    region: tuple[str, ...],
    key: Callable[[str], str],
) -> tuple[_Overlap, _Overlap]:
    """Return how many lines above and below the region the reply repeats, beyond those that the region repeats."""
    said, own = [key(line) for line in lines], [key(line) for line in region]
    above, below = [key(line) for line in before], [key(line) for line in after][::-1]
    return (
        _beyond(_overlap(above, said), _overlap(above, own), _overlap(_stripped(above), _stripped(own))),
        _beyond(
            _overlap(below, said[::-1]),
            _overlap(below, own[::-1]),
            _overlap(_stripped(below), _stripped(own[::-1])),
        ),
    )


def _stripped(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines]


def _beyond(repeated: _Overlap, own: _Overlap, own_text: _Overlap) -> _Overlap:
    """Return the repeated lines if they outnumber the region's own; certain only if they do so by text alone."""
    if repeated.size <= own.size:
        return _Overlap()
    return _Overlap(repeated.size, repeated.is_sure and repeated.size > own_text.size)


def _overlap(left: list[str], right: list[str]) -> _Overlap:
    """Return the longest suffix of `left` that is a prefix of `right`, preferring one that cannot be an accident."""
    unsure = 0
    for size in range(min(len(left), len(right)), 0, -1):
        if left[-size:] == right[:size]:
            said = [line for line in right[:size] if line]
            if len(said) > 1 or (said and len(said[0].strip()) >= _MIN_ALONE):
                return _Overlap(size, True)
            unsure = max(unsure, size if said else 0)
    return _Overlap(unsure, False)


def _is_balanced(lines: tuple[str, ...], other: tuple[str, ...], region: tuple[str, ...]) -> bool:
    """Return whether `lines` leave as many brackets open as the region does, and `other` does not."""
    return bool(region) and _open_brackets(lines) == _open_brackets(region) != _open_brackets(other)


def _open_brackets(lines: tuple[str, ...]) -> tuple[int, ...]:
    text = "\n".join(lines)
    return tuple(text.count(left) - text.count(right) for left, right in ("()", "[]", "{}"))
