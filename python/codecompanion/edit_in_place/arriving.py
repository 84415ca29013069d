"""The code of a reply that is still arriving, indented as the file is: drawn as it will be proposed.

The whole of what is there is fitted again each time it has grown by a tenth, so that a long reply costs a constant
factor; lines in between are indented as those before them. `reply.read_reply` has the last word.
"""

from __future__ import annotations

import msgspec

from codecompanion.edit_in_place.fit import fitted_so_far
from codecompanion.edit_in_place.indent_change import IndentChange
from codecompanion.edit_in_place.numbered import looks_numbered, without_numbers
from codecompanion.edit_in_place.place import Placement
from codecompanion.edit_in_place.quoted import quoted
from codecompanion.edit_in_place.restoring import restored
from codecompanion.wire.requests import EditPlace

_GROWTH = 1.1
_MAX_HEAD = 30
"""Lines above the region that are recognised at the beginning of a reply before all of them have arrived."""


class News(msgspec.Struct, frozen=True):
    """What has changed of the lines told so far: the first `kept` of them stay, and `lines` follow."""

    kept: int
    lines: tuple[str, ...]


class ArrivingCode:
    """Fits the lines of one reply as they arrive."""

    def __init__(self, place: EditPlace, instruction: str = "") -> None:
        self._place, self._instruction = place, instruction
        self._raw: list[str] = []
        self._told: tuple[str, ...] = ()
        self._fitted_to = 0
        """Raw lines that were there when all of them were fitted."""
        self._change, self._lines, self._next = IndentChange(), tuple[str, ...](), 0

    def take(self, lines: tuple[str, ...], placement: Placement) -> News | None:
        """Take in whole lines of the reply; return what is to be drawn otherwise, None for nothing."""
        self._raw.extend(lines)
        if placement in ("new", "chat") or self._may_be_left_out():
            return None
        if len(self._raw) >= self._fitted_to * _GROWTH:
            self._fitted_to = len(self._raw)
            self._lines, self._change, self._next = fitted_so_far(
                tuple(self._raw), self._place, placement, self._instruction
            )
        now = (*self._lines, *self._since())
        told, self._told = self._told, now
        kept = _shared(told, now)
        return News(kept, now[kept:]) if now != told else None

    def _since(self) -> tuple[str, ...]:
        """Return the lines that came after all were fitted, indented as those were."""
        if self._fitted_to == len(self._raw):
            return ()
        # With the line before them: one number alone counts nothing.
        lines = without_numbers(tuple(self._raw[self._fitted_to - 1 :]), self._place.region)[1:]
        near = self._place.region[self._next : self._next + 2 * len(lines)]
        change = msgspec.structs.replace(self._change, has_lost_first=False)
        return restored(change, quoted(lines, near), self._place)

    def _may_be_left_out(self) -> bool:
        """Return whether the beginning is yet no more than lines above the region, or the number of a line."""
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


def _shared(old: tuple[str, ...], new: tuple[str, ...]) -> int:
    size = 0
    while size < len(old) and size < len(new) and old[size] == new[size]:
        size += 1
    return size
