"""The code of a reply as it belongs in the file: without repeated surroundings, indented as the file is."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from codecompanion.edit_in_place.indent_change import IndentChange, change_of
from codecompanion.edit_in_place.numbered import without_numbers
from codecompanion.edit_in_place.place import Placement, is_blank, marker_of
from codecompanion.edit_in_place.quoted import Quoted, moves_only, quoted
from codecompanion.edit_in_place.restoring import restored
from codecompanion.wire.requests import EditPlace

_MIN_ALONE = 8
"""So many characters make a single repeated line recognisable; `}` or `end` could be meant."""
_WORD = re.compile(r"\w\w")
_ABOUT_INDENTATION = re.compile(
    r"\b(?:re|un|de|out)?-?(?:indent|dent(?:ed)?\b)|\bretab|\bexpandtab|white.?space"
    r"|\b(?:to|into|with|use|using|by|instead of|not|replace|convert|change) (?:the )?(?:\w+ )?(?:tabs\b|spaces\b)"
    r"|\beinr[uü]ck",
    re.IGNORECASE,
)
"""Instructions after which another indentation is the intended one."""
_ABOUT_WHITE_SPACE = re.compile(
    _ABOUT_INDENTATION.pattern + r"|\btab|\bspac|\balign|format|\btrailing|\bpretty|\bstyle|\bleerzeichen|\bausricht",
    re.IGNORECASE,
)
"""Instructions that may ask for other white space and nothing else."""
_LEFT_OUT = re.compile(
    r"^(?:\S{0,4}\s*+)?(?:\.\.\.|…)?\s*+\(?(?:the\s+)?(?:rest|remainder|remaining|existing|other|unchanged|same|previous)\b"
    r"[^\n]{0,60}?(?:\.\.\.|…|unchanged|as before|here|remains?)[^\n]{0,20}$",
    re.IGNORECASE,
)


def fitted(code: tuple[str, ...], place: EditPlace, placement: Placement, instruction: str = "") -> tuple[str, ...]:
    """Return the lines that belong in the file at `place`; `instruction` is what the user asked for."""
    lines = _without_tags(tuple(line.rstrip("\r") for line in code), marker_of(place))
    if placement == "new":
        return lines
    lines = without_numbers(lines, place.region)
    if placement == "replace":
        lines = _as_blank_as(lines, place.region)
    lines = _without_surroundings(lines, place, placement)
    return _indented(quoted(lines, place.region if placement == "replace" else ()), place, instruction)[0]


def may_change_steps(instruction: str) -> bool:
    """Return whether tabs for spaces, or other steps, are a habit of the model and not what it was asked for."""
    return _ABOUT_INDENTATION.search(instruction) is None


def _indented(found: Quoted, place: EditPlace, instruction: str) -> tuple[tuple[str, ...], IndentChange]:
    """Return the lines of a reply indented as the file is, and the change that this reverses.

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
    """Return lines of an arriving reply, its change of indentation, and how far into the region it is."""
    lines = without_numbers(_without_tags(code, marker_of(place)), place.region)
    if placement == "replace":
        first = next((at for at, line in enumerate(lines) if not is_blank(line)), len(lines))
        lines = lines[first:] if not place.region or not is_blank(place.region[0]) else lines
    lines = _without_surroundings(lines, msgspec.structs.replace(place, after=()), placement)
    found = quoted(lines, place.region if placement == "replace" else ())
    last = max((at for at, partner in enumerate(found.partner) if partner >= 0), default=-1)
    reached = (found.partner[last] + 1 if last >= 0 else 0) + len(lines) - last - 1
    near = place
    if placement == "replace" and reached:
        found = quoted(lines, place.region[:reached])
        near = msgspec.structs.replace(place, region=found.region, after=(*place.region[reached:], *place.after))
    return *_indented(found, near, instruction), reached


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
    repeated = _repeated(lines, before, after, region, str.rstrip)
    if not _is_sure(*repeated):
        repeated = _repeated(lines, before, after, region, str.strip)
    head, tail = repeated
    rest = lines[head.size : len(lines) - tail.size]
    if _is_sure(head, tail):
        are_brackets = not any(_WORD.search(line) for line in (*lines[: head.size], *lines[len(lines) - tail.size :]))
        return lines if are_brackets and _is_balanced(lines, rest, region) else rest
    without_tail = lines[: len(lines) - tail.size]
    return without_tail if _is_balanced(without_tail, lines, region) else lines


class _Overlap(msgspec.Struct, frozen=True):
    """How many lines are repeated, and whether that cannot be an accident: they are several, or one long line."""

    size: int = 0
    is_sure: bool = False


def _is_sure(head: _Overlap, tail: _Overlap) -> bool:
    """Return whether lines around the region are repeated: such that can be no accident, or some on both sides."""
    return head.is_sure or tail.is_sure or (head.size > 0 and tail.size > 0)


def _repeated(
    lines: tuple[str, ...],
    before: tuple[str, ...],
    after: tuple[str, ...],
    region: tuple[str, ...],
    key: Callable[[str], str],
) -> tuple[_Overlap, _Overlap]:
    """Return how much of what is above the region, and of what is below it, is in the reply and not in the region."""
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
    """Return what is repeated if it is more than the region itself repeats; it is sure if its text alone is more."""
    if repeated.size <= own.size:
        return _Overlap()
    return _Overlap(repeated.size, repeated.is_sure and repeated.size > own_text.size)


def _overlap(left: list[str], right: list[str]) -> _Overlap:
    """Return the longest end of `left` that `right` begins with: one that is sure before others."""
    unsure = 0
    for size in range(min(len(left), len(right)), 0, -1):
        if left[-size:] == right[:size]:
            said = [line for line in right[:size] if line]
            if len(said) > 1 or (said and len(said[0].strip()) >= _MIN_ALONE):
                return _Overlap(size, True)
            unsure = max(unsure, size if said else 0)
    return _Overlap(unsure, False)


def _is_balanced(lines: tuple[str, ...], other: tuple[str, ...], region: tuple[str, ...]) -> bool:
    """Return whether these lines have as many brackets open as the region has, and the others have not."""
    return bool(region) and _open_brackets(lines) == _open_brackets(region) != _open_brackets(other)


def _open_brackets(lines: tuple[str, ...]) -> tuple[int, ...]:
    text = "\n".join(lines)
    return tuple(text.count(left) - text.count(right) for left, right in ("()", "[]", "{}"))
