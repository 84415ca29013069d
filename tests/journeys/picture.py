"""Draws a terminal screen with its colours (`Terminal.screen(colours=True)`) as a PNG. Needs Pillow and a font."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tools.pictures.drawing import Colour, Look, Pen, image_of

POINTS = 16
_SGR = re.compile(r"\x1b\[([\d;:]*)m|\x1b\][^\x1b\x07]*(?:\x1b\\|\x07)|\x1b[()][AB0]|[\x0e\x0f]")
_BASIC = [
    (0, 0, 0), (205, 49, 49), (13, 188, 121), (229, 229, 16), (36, 114, 200), (188, 63, 188), (17, 168, 205),
    (229, 229, 229), (102, 102, 102), (241, 76, 76), (35, 209, 139), (245, 245, 67), (59, 142, 234), (214, 112, 214),
    (41, 184, 219), (255, 255, 255),
]  # fmt: skip


def draw(
    screen: str, size: tuple[int, int], path: Path, *, dark: bool = True, cursor: tuple[int, int] = (-1, -1)
) -> None:
    """Draw a screen of `size` (columns, lines) into a PNG; `cursor` is (row, column), 0-based."""
    look = Look(POINTS, *((208, 208, 208), (16, 16, 16)) if dark else ((20, 20, 20), (255, 255, 255)))
    lines: list[list[tuple[str, Pen]]] = []
    pen = Pen()
    for line in screen.split("\n")[: size[1]]:
        cells = []
        for text, held in _runs(line, pen):
            pen = held
            cells += [(cell, pen) for cell in _cells(text)]
        lines.append(cells)
    lines += [[]] * (size[1] - len(lines))
    path.parent.mkdir(parents=True, exist_ok=True)
    image_of(lines, size[0], look, cursor=cursor).save(path)


def _runs(line: str, pen: Pen) -> Iterator[tuple[str, Pen]]:
    """Yield (text, pen) for the pieces of a line between its codes; the next line begins with the last pen."""
    place = 0
    for code in _SGR.finditer(line):
        if code.start() > place:
            yield line[place : code.start()], pen
        place = code.end()
        if code[1] is not None:
            pen = _dipped(pen, [int(part or 0) for part in re.split("[;:]", code[1])])
    yield line[place:], pen


def _dipped(pen: Pen, codes: Sequence[int]) -> Pen:
    """Return the pen as changed by these SGR codes."""
    left = list(codes)
    switches: dict[int, dict[str, bool]] = {
        1: {"bold": True}, 3: {"italic": True}, 4: {"underline": True}, 7: {"reverse": True}, 9: {"struck": True},
        22: {"bold": False}, 23: {"italic": False}, 24: {"underline": False}, 27: {"reverse": False},
        29: {"struck": False},
    }  # fmt: skip
    while left:
        code = left.pop(0)
        if code == 0:
            pen = Pen()
        elif code in switches:
            pen = replace(pen, **switches[code])
        elif code in (38, 48):
            colour = _colour(left)
            pen = replace(pen, ink=colour) if code == 38 else replace(pen, paper=colour)
        elif code in (39, 49):
            pen = replace(pen, ink=None) if code == 39 else replace(pen, paper=None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            pen = replace(pen, ink=_BASIC[code - 30 if code < 90 else code - 82])
        elif 40 <= code <= 47 or 100 <= code <= 107:
            pen = replace(pen, paper=_BASIC[code - 40 if code < 100 else code - 92])
    return pen


def _colour(left: list[int]) -> Colour:
    """Remove the rest of a `38;2;r;g;b` or `38;5;n` code from the list, and return its colour."""
    if left.pop(0) == 2:
        red, green, blue = left[:3]
        del left[:3]
        return red, green, blue
    number = left.pop(0)
    if number < 16:
        return _BASIC[number]
    if number >= 232:
        grey = 8 + (number - 232) * 10
        return grey, grey, grey
    steps = (0, 95, 135, 175, 215, 255)
    number -= 16
    return steps[number // 36], steps[number // 6 % 6], steps[number % 6]


def _cells(text: str) -> Iterator[str]:
    """Yield the cells of a text, each a character with its combining characters."""
    cell = ""
    for character in text:
        if cell and (unicodedata.combining(character) or character in "\ufe0f\u200d"):
            cell += character
            continue
        if cell:
            yield cell
        cell = character
    if cell:
        yield cell
