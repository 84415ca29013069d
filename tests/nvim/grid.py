"""The screen of an attached Neovim UI (`ext_linegrid`): cells, highlight table, cursor, times of the flushes."""

from __future__ import annotations

import time
from typing import Any

Cell = tuple[str, int]


class Grid:
    """Applies batches of redraw events; `flushes` are `time.monotonic()` values, one per screen update."""

    def __init__(self) -> None:
        """Start with an empty screen."""
        self.columns, self.rows = 0, 0
        self.cells: list[list[Cell]] = []
        self.highlights: dict[int, dict[str, Any]] = {0: {}}
        self.terminal_highlights: dict[int, dict[str, Any]] = {0: {}}
        self.cursor = (0, 0)
        self.mode = "normal"
        self.default_colours = ((208, 208, 208), (16, 16, 16))
        self.flushes: list[float] = []

    def text(self) -> str:
        """Return the rows as lines without trailing blanks."""
        return "\n".join("".join(text for text, _ in row).rstrip() for row in self.cells)

    def attributes(self, row: int, column: int) -> dict[str, Any]:
        """Return the highlight attributes of a cell (0-based)."""
        return self.highlights.get(self.cells[row][column][1], {})

    def colours(self, row: int, column: int, *, true_colour: bool = True) -> tuple[int, int]:
        """Return the visible colours of a cell: foreground and background; -1 is the default.

        They are 24-bit numbers, or indices of a terminal's 256 colours.
        """
        attributes = (self.highlights if true_colour else self.terminal_highlights).get(self.cells[row][column][1], {})
        ink, paper = attributes.get("foreground", -1), attributes.get("background", -1)
        return (paper, ink) if attributes.get("reverse") else (ink, paper)

    def apply(self, events: list[list[Any]]) -> None:
        """Apply one redraw notification; unused events are ignored."""
        for name, *calls in events:
            method = getattr(self, f"_{name}", None)
            if method is not None:
                for call in calls:
                    method(*call)

    def _grid_resize(self, _grid: int, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._grid_clear(_grid)

    def _grid_clear(self, _grid: int) -> None:
        self.cells = [[(" ", 0)] * self.columns for _ in range(self.rows)]

    def _hl_attr_define(self, number: int, rgb: dict[str, Any], terminal: dict[str, Any], *_: Any) -> None:
        self.highlights[number], self.terminal_highlights[number] = rgb, terminal

    def _default_colors_set(self, ink: int, paper: int, *_: Any) -> None:
        """Store the colours of text without a highlight, as (red, green, blue); -1 = the terminal's own."""
        before = self.default_colours
        self.default_colours = (_rgb(ink) if ink >= 0 else before[0], _rgb(paper) if paper >= 0 else before[1])

    def _grid_cursor_goto(self, _grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _mode_change(self, mode: str, _index: int) -> None:
        self.mode = mode

    def _grid_line(self, _grid: int, row: int, column: int, cells: list[list[Any]], *_: Any) -> None:
        highlight = 0
        for cell in cells:
            if len(cell) > 1:
                highlight = cell[1]
            for _repeat in range(cell[2] if len(cell) > 2 else 1):
                self.cells[row][column] = (cell[0], highlight)
                column += 1

    def _grid_scroll(self, _grid: int, top: int, bottom: int, left: int, right: int, rows: int, _columns: int) -> None:
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            self.cells[row][left:right] = self.cells[row + rows][left:right]

    def _flush(self, *_: Any) -> None:
        self.flushes.append(time.monotonic())


def _rgb(number: int) -> tuple[int, int, int]:
    return number >> 16 & 255, number >> 8 & 255, number & 255
