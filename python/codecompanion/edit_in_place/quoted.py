"""Compares a reply's lines with the file's to find equal, changed, wrapped and unwrapped lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from codecompanion.edit_in_place.indentation import is_preprocessor_directive, lead_of, opens_block, parents, text_of
from codecompanion.edit_in_place.matching import Pairs, matching_lines
from codecompanion.edit_in_place.place import is_blank


class Quoted(msgspec.Struct, frozen=True):
    """Maps the lines of a reply to the lines of the file that they replace.

    `partner`: for each line of the reply, the equal line of the region, ignoring indentation; -1 if there is none.
    `place`: the line that it replaces, either its partner or a changed line; -1 if there is none. `parent`: the line of
    the reply that encloses it. `keeps_parent`: whether the parent replaces the old line's parent. `may_be_deeper`: the
    line was wrapped in a new block; `may_be_less_deep`: its block was removed.
    """

    lines: tuple[str, ...]
    region: tuple[str, ...]
    partner: tuple[int, ...]
    place: tuple[int, ...]
    parent: tuple[int, ...]
    keeps_parent: tuple[bool, ...]
    may_be_deeper: tuple[bool, ...]
    may_be_less_deep: tuple[bool, ...]

    @property
    def first(self) -> int:
        """The index of the first line with meaningful indentation, or -1 if there is none."""
        return next((at for at, line in enumerate(self.lines) if is_indented_code(line)), -1)


def quoted(lines: tuple[str, ...], region: tuple[str, ...]) -> Quoted:
    """Match the lines of a reply with those of the region."""
    partner = [-1] * len(lines)
    pairs = _pairs(lines, region)
    for old, new in pairs:
        partner[new] = old
    place = _places(lines, region, pairs)
    there = set(place)
    inside, before = parents(_leads(lines)), parents(_leads(region))
    keeps, is_wrapped, is_unwrapped = [], [], []
    for at, line in enumerate(lines):
        own, old = inside[at], before[partner[at]] if partner[at] >= 0 else -1
        same = (own < 0 and old < 0) or (own >= 0 and old >= 0 and place[own] == old)
        keeps.append(partner[at] >= 0 and not is_blank(line) and same)
        is_wrapped.append(own >= 0 and partner[own] < 0 and opens_block(lines[own]))
        is_unwrapped.append(old >= 0 and old not in there)
    return Quoted(
        lines, region, tuple(partner), tuple(place), tuple(inside), tuple(keeps), tuple(is_wrapped), tuple(is_unwrapped)
    )


def _places(lines: tuple[str, ...], region: tuple[str, ...], pairs: Pairs) -> list[int]:
    """Return the line of the region that each line replaces: its partner, or a line that was changed."""
    place = [-1] * len(lines)
    for (old, new), (next_old, next_new) in pairwise([(-1, -1), *pairs, (len(region), len(lines))]):
        if new >= 0:
            place[new] = old
        gone, come = range(old + 1, next_old), range(new + 1, next_new)
        if [is_blank(region[at]) for at in gone] == [is_blank(lines[at]) for at in come]:
            for at, own in zip(come, gone, strict=True):
                place[at] = own
    return place


def _pairs(lines: tuple[str, ...], region: tuple[str, ...]) -> Pairs:
    """Return pairs of lines equal apart from white space, or fully equal pairs if there are as many (`}` is common)."""
    loose = matching_lines([text_of(line) for line in region], [text_of(line) for line in lines])
    exact = matching_lines([_with_lead(line) for line in region], [_with_lead(line) for line in lines])
    same = [pair for pair in exact if not is_blank(lines[pair[1]])]
    return exact if len(same) >= sum(not is_blank(lines[new]) for _, new in loose) else loose


def _with_lead(line: str) -> str:
    return lead_of(line) + text_of(line) if not is_blank(line) else ""


def moves_only(found: Quoted) -> bool:
    """Return whether the reply differs from the region only in white space."""
    old, new = ([text_of(line) for line in some if not is_blank(line)] for some in (found.region, found.lines))
    return old == new


def _leads(lines: Sequence[str]) -> list[str | None]:
    return [lead_of(line) if is_indented_code(line) else None for line in lines]


def is_indented_code(line: str) -> bool:
    """Return whether the indentation of a line is meaningful."""
    return not is_blank(line) and not is_preprocessor_directive(line)
