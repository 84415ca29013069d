"""Builds the message with the lines of an edit and their surroundings.

This message is sent between the system prompt of the turn, which specifies the reply format
(`prompts/edit_in_place.md`), and the user's message, which is the instruction.
"""

from __future__ import annotations

import re

from codecompanion.edit_in_place.place import marker_of
from codecompanion.wire.requests import EditTarget

MIN_CHARS, MAX_CHARS = 400, 12_000
"""Minimum and maximum characters of surroundings to attach on each side."""


def chars_around(room_tokens: int) -> int:
    """Return how many characters of the surroundings to attach on each side; `room_tokens` is 0 if unknown."""
    return max(MIN_CHARS, min(MAX_CHARS, room_tokens // 3)) if room_tokens else MAX_CHARS // 2


def title_of(target: EditTarget) -> str:
    """Return a short title with the file and lines of an edit."""
    name = " ".join(target.path.split()) or "an unnamed buffer"
    last = target.first + max(1, len(target.region)) - 1
    return f"line {last} of {name}" if last == target.first else f"lines {target.first}-{last} of {name}"


def lines_of(target: EditTarget, around: int) -> str:
    """Return the text of the message. `around`: characters of the surroundings on each side; 0 for a follow-up."""
    marker = marker_of(target)
    marked = (f"<{marker}>", *target.region, f"</{marker}>")
    between = f"between <{marker}> and </{marker}>"
    if target.is_follow_up:
        return f"The text {between} is now:\n\n{_fenced(marked, target.filetype)}"
    before, after = _end_of(target.before, around), _beginning_of(target.after, around)
    where = title_of(target) + (f" ({target.filetype})" if target.filetype else "")
    if not before and not after and not any(line.strip() for line in target.region):
        about = f"The file is empty. Write {between}, {where}:"
    elif target.region:
        about = f"Edit the text {between}, {where}; the rest is context:"
    else:
        about = f"Fill the place {between}, before {where}:"
    return f"{about}\n\n{_fenced((*before, *marked, *after), target.filetype)}"


def _fenced(lines: tuple[str, ...], filetype: str) -> str:
    """Return the lines in a fenced code block whose fence is longer than any fence inside."""
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
