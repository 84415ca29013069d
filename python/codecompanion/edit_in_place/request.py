"""The message of an edit: the instruction, the lines, what stands around them, and the form of the reply."""

from __future__ import annotations

import re

from codecompanion import prompts
from codecompanion.edit_in_place.place import Place

MIN_CHARS, MAX_CHARS = 400, 12_000
"""How much of what stands around the lines goes along, on each side: at least, and at most."""


def chars_around(room_tokens: int) -> int:
    """Return how many characters of the surroundings go along on each side; 0 tokens of room are not known."""
    return max(MIN_CHARS, min(MAX_CHARS, room_tokens // 3)) if room_tokens else MAX_CHARS // 2


def compose(instruction: str, place: Place, *, path: str, first: int, around: int, is_follow_up: bool = False) -> str:
    """Return the text of the message. `first` is the number of the region's first line, from 1.

    `around`: characters of the surroundings on each side. A follow-up repeats neither them nor the form.
    """
    where = f"{path or 'a buffer without a name'}" + (f" ({place.filetype})" if place.filetype else "")
    edit = ("<edit>", *place.region, "</edit>")
    if is_follow_up:
        text = ("The lines are now:", _fenced(edit, place.filetype), "Answer in the same form as before.")
        return "\n\n".join((instruction.strip(), *text))
    before, after = _end_of(place.before, around), _beginning_of(place.after, around)
    if not before and not after and not any(line.strip() for line in place.region):
        about = f"{where} is empty; what you write goes between <edit> and </edit>."
    elif place.region:
        last = first + len(place.region) - 1
        lines = f"line {first}" if last == first else f"lines {first} to {last}"
        about = f"It is about {lines} of {where}, between <edit> and </edit>; the rest is there to be read."
    else:
        about = f"It is about the place between <edit> and </edit> in {where}, before line {first}."
    code = _fenced((*before, *edit, *after), place.filetype)
    return "\n\n".join((instruction.strip(), about, code, prompts.load("edit_in_place")))


def _fenced(lines: tuple[str, ...], filetype: str) -> str:
    """Return the lines in a fence that is longer than any of theirs."""
    text = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{filetype}\n{text}\n{fence}"


def _beginning_of(lines: tuple[str, ...], chars: int) -> tuple[str, ...]:
    taken = 0
    for at, line in enumerate(lines):
        taken += len(line) + 1
        if taken > chars:
            return lines[:at]
    return lines


def _end_of(lines: tuple[str, ...], chars: int) -> tuple[str, ...]:
    return tuple(reversed(_beginning_of(tuple(reversed(lines)), chars)))
