"""Draws a picture with dots, eight per cell in Braille, or one per cell in plain ASCII.

Braille is one cell wide in every terminal, whatever the value of 'ambiwidth'; consoles and fonts without it get ASCII.
The front ink of a cell gives it its colour. Rows count from the bottom, columns from the left.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

import msgspec

Ink = Literal["limit", "without", "sent"]
_INKS: tuple[Ink, ...] = ("limit", "without", "sent")
"""The inks, from back to front."""
_ASCII: dict[Ink, str] = {"limit": "-", "without": "*", "sent": "#"}
_BRAILLE = 0x2800
_BITS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""The Braille bit of each dot in a cell, by column and row from the bottom."""


class Span(msgspec.Struct, frozen=True):
    """Cells of one line with one colour, as UTF-8 bytes from `first` (0-based) up to `end` (exclusive)."""

    first: int
    end: int
    ink: str


class Dots:
    """A field of `columns` × `rows` cells with `across` × `up` dots each."""

    def __init__(self, columns: int, rows: int, *, ascii: bool) -> None:
        self.across, self.up = (1, 1) if ascii else (2, 4)
        self.width, self.height = columns * self.across, rows * self.up
        self._columns, self._rows, self._ascii = columns, rows, ascii
        self._cells: dict[tuple[int, int], dict[Ink, int]] = {}

    def dot(self, x: int, y: int, ink: Ink) -> None:
        """Set a dot; a dot outside the field is ignored."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return
        bit = 1 if self._ascii else _BITS[x % 2][y % 4]
        inks = self._cells.setdefault((y // self.up, x // self.across), {})
        inks[ink] = inks.get(ink, 0) | bit

    def column(self, x: int, first: int, end: int, ink: Ink) -> None:
        """Set the dots of a column from row `first` up to row `end` (exclusive)."""
        for y in range(max(0, first), min(end, self.height)):
            self.dot(x, y, ink)

    def lines(self) -> Iterator[tuple[str, list[Span]]]:
        """Yield the lines from top to bottom, each with its colours."""
        for row in reversed(range(self._rows)):
            yield self._line([self._cells.get((row, column), {}) for column in range(self._columns)])

    def _line(self, cells: list[dict[Ink, int]]) -> tuple[str, list[Span]]:
        text, spans = "", list[Span]()
        for ink, group in groupby(cells, _front):
            first = len(text.encode())
            text += "".join(self._character(cell) for cell in group)
            if ink:
                spans.append(Span(first, len(text.encode()), ink))
        return text, spans

    def _character(self, cell: dict[Ink, int]) -> str:
        front = _front(cell)
        if not front:
            return " "
        if self._ascii:
            return _ASCII[front]
        bits = 0
        for ink, part in cell.items():
            if ink != "limit" or front == "limit":  # the limit's dots would fray the edge of the area in front of it
                bits |= part
        return chr(_BRAILLE | bits)


def _front(cell: dict[Ink, int]) -> Ink | None:
    return next((ink for ink in reversed(_INKS) if ink in cell), None)
