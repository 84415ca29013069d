"""Draws coloured cells as an image, for a terminal's screen and for an attached grid. Needs Pillow.

Braille, blocks and box lines are drawn here instead of with a font: few fonts have them all, and they have to meet at
the edges of their cells.
"""

from __future__ import annotations

import subprocess
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

_DEJAVU = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono"
_BRAILLE_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
"""Column and row of each bit of a Braille cell."""

Colour = tuple[int, int, int]
Cursor = Literal["block", "bar", "frame"]


@dataclass(frozen=True)
class Pen:
    """The style of a cell. None: the terminal's own colour."""

    ink: Colour | None = None
    paper: Colour | None = None
    bold: bool = False
    italic: bool = False
    underline: bool = False
    struck: bool = False
    reverse: bool = False


@dataclass(frozen=True)
class Look:
    """Letter size in pixels, the terminal's own colours, and the margin around the screen in pixels."""

    points: int = 16
    ink: Colour = (208, 208, 208)
    paper: Colour = (16, 16, 16)
    margin: int = 0


Cells = Sequence[tuple[str, Pen]]
"""One line: text of one or two cells each, or "" for a cell covered by a wide one."""


def image_of(
    lines: Sequence[Cells], columns: int, look: Look, *, cursor: tuple[int, int] = (-1, -1), shape: Cursor = "frame"
) -> Any:
    """Return the lines as an image; `cursor` is (row, column), 0-based, negative for none."""
    from PIL import Image, ImageDraw

    fonts = _fonts(look.points)
    width, height = cell_size(look.points)
    size = (width * columns + 2 * look.margin, height * len(lines) + 2 * look.margin)
    image = Image.new("RGB", size, look.paper)
    canvas = ImageDraw.Draw(image)
    for row, cells in enumerate(lines):
        column = 0
        for text, pen in cells:
            wide = 2 if text and unicodedata.east_asian_width(text[0]) in "WF" else 1
            x, y = look.margin + column * width, look.margin + row * height
            if shape == "block" and (row, column) == cursor:
                pen = Pen(look.paper, look.ink)
            if column < columns:
                _paint(canvas, fonts, text, (x, y, wide * width, height), pen, look)
            column += wide if text else 0
    if cursor[0] >= 0 and shape != "block":
        x, y = look.margin + cursor[1] * width, look.margin + cursor[0] * height
        if shape == "bar":
            canvas.rectangle([x, y, x + max(1, width // 6), y + height - 1], fill=look.ink)
        else:
            canvas.rectangle([x, y, x + width - 1, y + height - 1], outline=(255, 140, 0), width=2)
    return image


def cell_size(points: int) -> tuple[int, int]:
    """Return the width and height of a cell in pixels."""
    plain = _fonts(points)[False, False]
    return round(plain.getlength("M")), sum(plain.getmetrics())


def _paint(canvas: Any, fonts: Any, text: str, box: tuple[int, int, int, int], pen: Pen, look: Look) -> None:
    x, y, width, height = box
    ink, paper = pen.ink or look.ink, pen.paper or look.paper
    if pen.reverse:
        ink, paper = paper, ink
    if paper != look.paper:
        canvas.rectangle([x, y, x + width - 1, y + height - 1], fill=paper)
    if text.strip() and not _shape(canvas, text[0], box, ink):
        canvas.text((x, y), text, font=fonts[pen.bold, pen.italic], fill=ink)
    if pen.underline:
        canvas.line([x, y + height - 2, x + width - 1, y + height - 2], fill=ink)
    if pen.struck:
        canvas.line([x, y + height // 2, x + width - 1, y + height // 2], fill=ink)


def _shape(canvas: Any, sign: str, box: tuple[int, int, int, int], ink: Colour) -> bool:
    """Draw a character that is a shape instead of a letter; return whether it is one."""
    x, y, width, height = box
    code = ord(sign)
    if 0x2800 <= code <= 0x28FF:
        radius = max(1.0, width * 0.17)
        for bit, (column, row) in enumerate(_BRAILLE_DOTS):
            if (code - 0x2800) >> bit & 1:
                cx, cy = x + width * (0.25 + 0.5 * column), y + height * (0.125 + 0.25 * row)
                canvas.ellipse([cx - radius, cy - radius, cx + radius, cy + radius], fill=ink)
        return True
    if 0x2581 <= code <= 0x2588:  # from one eighth to a full block, from below
        canvas.rectangle([x, y + height - round(height * (code - 0x2580) / 8), x + width - 1, y + height - 1], fill=ink)
        return True
    if 0x2589 <= code <= 0x258F:  # from seven eighths to one, from the left
        canvas.rectangle([x, y, x + round(width * (0x2590 - code) / 8) - 1, y + height - 1], fill=ink)
        return True
    thick = max(1, round(width / 9))
    if sign in "─│":
        cx, cy = x + width // 2, y + height // 2
        ends = [x, cy - thick // 2, x + width - 1, cy + (thick - 1) // 2]
        if sign == "│":
            ends = [cx - thick // 2, y, cx + (thick - 1) // 2, y + height - 1]
        canvas.rectangle(ends, fill=ink)
        return True
    return False


@cache
def _fonts(points: int) -> dict[tuple[bool, bool], Any]:
    """Return the fonts by (bold, italic)."""
    from PIL import ImageFont

    names = {(False, False): "", (True, False): "-Bold", (False, True): "-Oblique", (True, True): "-BoldOblique"}
    plain = f"{_DEJAVU}.ttf"
    if not Path(plain).exists():
        found = subprocess.run(["fc-match", "-f", "%{file}", "monospace"], capture_output=True, text=True, check=False)
        plain = found.stdout
    paths = {style: f"{_DEJAVU}{name}.ttf" for style, name in names.items()}
    return {style: ImageFont.truetype(path if Path(path).exists() else plain, points) for style, path in paths.items()}
