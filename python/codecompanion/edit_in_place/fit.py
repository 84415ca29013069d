"""Fits the code of a reply into the file: removes repeated surroundings and restores the file's indentation."""

from __future__ import annotations

import re

import msgspec

from codecompanion.edit_in_place.indent_change import IndentChange, change_of
from codecompanion.edit_in_place.indentation import text_of
from codecompanion.edit_in_place.numbered import without_numbers
from codecompanion.edit_in_place.place import Placement, is_blank, marker_of
from codecompanion.edit_in_place.quoted import Quoted, moves_only, quoted
from codecompanion.edit_in_place.repeated_surroundings import without_surroundings
from codecompanion.edit_in_place.restoring import restored
from codecompanion.wire.requests import EditPlace

_ABOUT_INDENTATION = re.compile(
    r"\b(?:re|un|de|out)?-?(?:indent|dent(?:ed)?\b)|\bretab|\bexpandtab|white.?space"
    r"|\b(?:to|into|with|use|using|by|instead of|not|replace|convert|change) (?:the )?(?:\w+ )?(?:tabs\b|spaces\b)"
    r"|\beinr[uü]ck",
    re.IGNORECASE,
)
"""Matches instructions that may ask for different indentation."""
_ABOUT_WHITE_SPACE = re.compile(
    _ABOUT_INDENTATION.pattern + r"|\btab|\bspac|\balign|format|\btrailing|\bpretty|\bstyle|\bleerzeichen|\bausricht",
    re.IGNORECASE,
)
"""Matches instructions that may ask only for different white space."""
_LEFT_OUT = re.compile(
    r"^(?:\S{0,4}\s*+)?(?:\.\.\.|…)?\s*+\(?(?:the\s+)?(?:rest|remainder|remaining|existing|other|unchanged|same|previous)\b"
    r"[^\n]{0,60}?(?:\.\.\.|…|unchanged|as before|here|remains?)[^\n]{0,20}$",
    re.IGNORECASE,
)


def fitted(code: tuple[str, ...], place: EditPlace, placement: Placement, instruction: str = "") -> tuple[str, ...]:
    """Return the lines to put into the file at `place`; `instruction` is the user's request."""
    lines = _without_tags(tuple(line.rstrip("\r") for line in code), marker_of(place))
    if placement == "new":
        return lines
    lines = without_numbers(lines, place.region)
    if placement == "replace":
        lines = _as_blank_as(lines, place.region)
    lines = without_surroundings(lines, place, placement)
    return _indented(quoted(lines, place.region if placement == "replace" else ()), place, instruction)[0]


def may_change_steps(instruction: str) -> bool:
    """Return whether a changed indentation step, or tabs, may be undone because the user did not ask for them."""
    return _ABOUT_INDENTATION.search(instruction) is None


def _indented(found: Quoted, place: EditPlace, instruction: str) -> tuple[tuple[str, ...], IndentChange]:
    """Return the lines of a reply with the file's indentation, and the change that was reversed.

    Lines of the file keep their bytes, unless the instruction is about them and nothing else differs.
    """
    if moves_only(found) and _ABOUT_WHITE_SPACE.search(instruction):
        return found.lines, IndentChange()
    may = may_change_steps(instruction)
    change = change_of(found, place, may_change_steps=may)
    return restored(change, found, place, may_change_steps=may), change


def fitted_so_far(
    code: tuple[str, ...], place: EditPlace, placement: Placement, instruction: str = ""
) -> tuple[tuple[str, ...], IndentChange, int]:
    """Return the lines of a partial reply, its indentation change, and how many region lines it covers so far."""
    lines = without_numbers(_without_tags(code, marker_of(place)), place.region)
    if placement == "replace":
        first = next((at for at, line in enumerate(lines) if not is_blank(line)), len(lines))
        lines = lines[first:] if not place.region or not is_blank(place.region[0]) else lines
    lines = without_surroundings(lines, msgspec.structs.replace(place, after=()), placement)
    found = quoted(lines, place.region if placement == "replace" else ())
    last = max((at for at, partner in enumerate(found.partner) if partner >= 0), default=-1)
    reached = (found.partner[last] + 1 if last >= 0 else 0) + len(lines) - last - 1
    near = place
    if placement == "replace" and reached:
        found = quoted(lines, place.region[:reached])
        near = msgspec.structs.replace(place, region=found.region, after=(*place.region[reached:], *place.after))
    return *_indented(found, near, instruction), reached


def left_out(lines: tuple[str, ...], place: EditPlace) -> str:
    """Return the line that marks omitted code of the region ("… existing code …"), or "" if there is none."""
    known = {line.strip() for line in (*place.region, *place.before, *place.after)}
    for line in lines:
        text = line.strip()
        if text not in known and ("..." in text or "…" in text) and _LEFT_OUT.match(text):
            return text
    return ""


def _without_tags(lines: tuple[str, ...], marker: str) -> tuple[str, ...]:
    """Return the lines without the tags that marked the region; no line of the file equals a tag."""
    tags = (f"<{marker}>", f"</{marker}>")
    return tuple(line for line in lines if line.strip() not in tags)


def _as_blank_as(lines: tuple[str, ...], region: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines without leading and trailing blank lines that the region does not have."""
    first, last = 0, len(lines)
    if not region or not is_blank(region[0]):
        while first < last and not text_of(lines[first]):
            first += 1
    if not region or not is_blank(region[-1]):
        while last > first and not text_of(lines[last - 1]):
            last -= 1
    return lines[first:last]
