"""The code of a reply as it belongs into the file: no line of the surroundings twice, indented as the file is."""

from __future__ import annotations

import re

from codecompanion.edit_in_place.numbered import without_numbers
from codecompanion.edit_in_place.place import Placement, is_blank, marker_of
from codecompanion.wire.requests import EditPlace

_OPENS = re.compile(r"(?:[:{(\[]|\b(?:then|do|else|begin|try|repeat)|\bfunction\b.*\))\s*$")
"""How a line ends that the next one is indented below."""
_MIN_ALONE = 8
"""So many characters make a single repeated line recognisable; `}` or `end` could be meant."""
_LEFT_OUT = re.compile(
    r"^(?:\S{0,4}\s*+)?(?:\.\.\.|…)?\s*+\(?(?:the\s+)?(?:rest|remainder|remaining|existing|other|unchanged|same|previous)\b"
    r"[^\n]{0,60}?(?:\.\.\.|…|unchanged|as before|here|remains?)[^\n]{0,20}$",
    re.IGNORECASE,
)


def fitted(code: tuple[str, ...], place: EditPlace, placement: Placement) -> tuple[str, ...]:
    """Return the lines that belong into the file at `place`."""
    lines = _without_tags(tuple(line.rstrip("\r") for line in code), marker_of(place))
    if placement == "new":
        return lines
    lines = without_numbers(lines, place.region)
    if placement == "replace":
        lines = _as_blank_as(lines, place.region)
    lines = _without_surroundings(lines, place, placement)
    lines = _indented(_with_tabs(lines, place), place)
    return _outdented(lines, place.region) if placement == "replace" else lines


def left_out(lines: tuple[str, ...], place: EditPlace) -> str:
    """Return the line by which a reply says that it leaves code of the region out ("… existing code …"), "" = none."""
    known = {line.strip() for line in (*place.region, *place.before, *place.after)}
    for line in lines:
        text = line.strip()
        if text not in known and ("..." in text or "…" in text) and _LEFT_OUT.match(text):
            return text
    return ""


def _without_tags(lines: tuple[str, ...], marker: str) -> tuple[str, ...]:
    """Return the lines without the tags that marked the place: no line of the file is one of them."""
    tags = (f"<{marker}>", f"</{marker}>")
    return tuple(line for line in lines if line.strip() not in tags)


def _as_blank_as(lines: tuple[str, ...], region: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines without blank ones at the ends that the region has not."""
    first, last = 0, len(lines)
    if not region or not is_blank(region[0]):
        while first < last and is_blank(lines[first]):
            first += 1
    if not region or not is_blank(region[-1]):
        while last > first and is_blank(lines[last - 1]):
            last -= 1
    return lines[first:last]


# ---- what stands around it already


def _without_surroundings(lines: tuple[str, ...], place: EditPlace, placement: Placement) -> tuple[str, ...]:
    before, after, region = place.before, place.after, place.region
    if placement == "after":
        before, region = (*before, *region), ()
    elif placement == "before":
        after, region = (*region, *after), ()
    head = _repeated_head(lines, before)
    if head and _repeated_head(region, before) < head:
        lines = lines[head:]
    tail = _repeated_tail(lines, after)
    if tail and _repeated_tail(region, after) < tail:
        lines = lines[: len(lines) - tail]
    return lines


def _repeated_head(lines: tuple[str, ...], before: tuple[str, ...]) -> int:
    """Return how many lines at the beginning are the last ones of what stands before."""
    return _overlap([line.strip() for line in before], [line.strip() for line in lines])


def _repeated_tail(lines: tuple[str, ...], after: tuple[str, ...]) -> int:
    return _overlap([line.strip() for line in reversed(after)], [line.strip() for line in reversed(lines)])


def _overlap(left: list[str], right: list[str]) -> int:
    """Return how long the longest end of `left` is that `right` begins with, if that can be no accident."""
    for size in range(min(len(left), len(right)), 0, -1):
        if left[-size:] == right[:size]:
            said = [line for line in right[:size] if line]
            if len(said) > 1 or (said and len(said[0]) >= _MIN_ALONE):
                return size
    return 0


# ---- indentation


def _lead(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _with_tabs(lines: tuple[str, ...], place: EditPlace) -> tuple[str, ...]:
    """Return the lines indented by what the file is indented by: tabs, or spaces."""
    leads = [_lead(line) for line in lines if not is_blank(line)]
    if place.tabs and not any("\t" in lead for lead in leads):
        steps = [len(lead) for lead in leads if lead]
        step = min(steps, default=0)
        if step < 2 or any(size % step for size in steps):
            return lines
        return tuple("\t" * (len(_lead(line)) // step) + line.lstrip(" ") for line in lines)
    if not place.tabs and any("\t" in lead for lead in leads):
        return tuple(_lead(line).replace("\t", " " * place.width) + line.lstrip(" \t") for line in lines)
    return lines


def _shared_lead(lines: tuple[str, ...]) -> str:
    """Return the white space that all lines with text begin with."""
    leads = [_lead(line) for line in lines if not is_blank(line)]
    shared = leads[0] if leads else ""
    for lead in leads:
        while not lead.startswith(shared):
            shared = shared[:-1]
    return shared


def _wanted_lead(place: EditPlace) -> str:
    """Return how far the code at this place is indented."""
    if any(not is_blank(line) for line in place.region):
        return _shared_lead(place.region)
    below = next((line for line in place.after if not is_blank(line)), "")
    above = next((line for line in reversed(place.before) if not is_blank(line)), "")
    return min(_lead(above), _lead(below), key=len)


def _indented(lines: tuple[str, ...], place: EditPlace) -> tuple[str, ...]:
    """Return the lines moved to the right, where the model has left out the indentation of the place."""
    wanted, shared = _wanted_lead(place), _shared_lead(lines)
    first = next((at for at, line in enumerate(lines) if not is_blank(line)), None)
    if first is None or not wanted or not wanted.startswith(shared) or shared == wanted:
        return lines
    if _only_first_lost(lines[first], lines[first + 1 :], wanted):
        return (*lines[:first], wanted + lines[first], *lines[first + 1 :])
    missing = wanted[len(shared) :]
    return tuple(line if is_blank(line) else missing + line for line in lines)


def _outdented(lines: tuple[str, ...], region: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines moved to the left, where all of them are deeper than all they replace.

    Lines that differ in nothing else were to be moved, and one alone may have to be.
    """
    said, old = ([line for line in some if not is_blank(line)] for some in (lines, region))
    if len(said) < 2 or not old or [line.strip() for line in said] == [line.strip() for line in old]:
        return lines
    shared, wanted = _shared_lead(lines), _shared_lead(region)
    if not shared.startswith(wanted):
        return lines
    more = len(shared) - len(wanted)
    return tuple(line if is_blank(line) else line[more:] for line in lines)


def _only_first_lost(line: str, rest: tuple[str, ...], wanted: str) -> bool:
    """Return whether the code is quoted from its first letter on: only its first line has no indentation."""
    if _lead(line) or all(is_blank(one) for one in rest):
        return False
    below = _shared_lead(rest)
    return below.startswith(wanted) and (below != wanted or _OPENS.search(line) is None)
