"""Indents the code of a reply while it arrives, so that it looks as it will in the proposal.

All the code so far is fitted again each time it has grown by a tenth, which keeps the overhead for a long reply to a
constant factor. Until then, new lines are indented like those before them. `read_reply.read_reply` makes the final
decision.
"""

from __future__ import annotations

import msgspec

from codecompanion.edit_in_place.fit import fitted_so_far, may_change_steps
from codecompanion.edit_in_place.indent_change import IndentChange
from codecompanion.edit_in_place.indentation import file_style
from codecompanion.edit_in_place.numbered import looks_numbered, without_numbers
from codecompanion.edit_in_place.place import Placement
from codecompanion.edit_in_place.quoted import quoted
from codecompanion.edit_in_place.restoring import restored
from codecompanion.wire.requests import EditPlace

_GROWTH = 1.1
_NEAR = 20
"""Number of region lines to search for the new lines."""
_MAX_HEAD = 30
"""Maximum number of lines above the region that are recognised at the beginning of a partial reply."""


class LineUpdate(msgspec.Struct, frozen=True):
    """A change to the reported lines: the first `kept` stay, and `lines` follow them."""

    kept: int
    lines: tuple[str, ...]


class ArrivingCode:
    """Fits the lines of one reply as they arrive."""

    def __init__(self, place: EditPlace, instruction: str = "") -> None:
        self._place, self._instruction, self._style = place, instruction, file_style(place)
        self._raw: list[str] = []
        self._told: list[str] = []
        self._fitted_to = 0
        """Number of raw lines at the last fitting of all lines."""
        self._change, self._reached = IndentChange(), 0

    def take(self, lines: tuple[str, ...], placement: Placement) -> LineUpdate | None:
        """Add whole lines of the reply; return the change to draw, or None."""
        self._raw.extend(lines)
        if placement in ("new", "chat") or self._may_be_left_out():
            return None
        told = len(self._told)
        if len(self._raw) >= self._fitted_to * _GROWTH:
            self._fitted_to = len(self._raw)
            now, self._change, self._reached = fitted_so_far(
                tuple(self._raw), self._place, placement, self._instruction
            )
            kept = _shared(self._told, now)
            new = now[kept:]
        else:
            kept, new = told, self._next(len(lines), placement)
        self._told[kept:] = new
        return LineUpdate(kept, new) if new or kept < told else None

    def _next(self, count: int, placement: Placement) -> tuple[str, ...]:
        """Return the newest `count` lines, indented like those before them."""
        # Include the line before them: a single number is not yet line numbering.
        lines = without_numbers(tuple(self._raw[-count - 1 :]), self._place.region)[1:]
        region = self._place.region if placement == "replace" else ()
        found = quoted(lines, region[self._reached : self._reached + _NEAR + 2 * count])
        self._reached += max(found.partner) + 1
        change = msgspec.structs.replace(self._change, has_lost_first=False)
        may = may_change_steps(self._instruction)
        return restored(change, found, self._place, may_change_steps=may, style=self._style)

    def _may_be_left_out(self) -> bool:
        """Return whether the reply so far consists only of lines from above the region, or of a line number."""
        count = len(self._raw)
        if count > _MAX_HEAD:
            return False
        said = [line.strip() for line in self._raw]
        if not any(said) or (count == 1 and looks_numbered(said[0])):
            return True
        if said == [line.strip() for line in self._place.region[:count]]:
            return False
        above = [line.strip() for line in self._place.before[-_MAX_HEAD:]]
        return any(above[at : at + count] == said for at in range(len(above) - count + 1))


def _shared(old: list[str], new: tuple[str, ...]) -> int:
    size = 0
    while size < len(old) and size < len(new) and old[size] == new[size]:
        size += 1
    return size
