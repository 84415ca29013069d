"""Removes line numbers that a model has written before the lines of code."""

from __future__ import annotations

import re

from codecompanion.edit_in_place.place import resembles

_NUMBERED = re.compile(r"^\s{0,8}(\d{1,7})(\s*[|│:→]|\t|\s{2})(.*)$")
_BARS = "|│→"
"""Separators after a line number that cannot belong to the code, unlike a colon."""


def looks_numbered(line: str) -> bool:
    """Return whether a line seems to begin with a line number."""
    return _NUMBERED.match(line) is not None


def without_numbers(lines: tuple[str, ...], region: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines without line numbers, unless the region itself has them."""
    found = [_NUMBERED.match(line) for line in lines]
    numbered = [one for one in found if one is not None]
    if len(numbered) < 2 or len(numbered) < len(lines):
        return lines
    numbers = [int(one[1]) for one in numbered]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return lines
    if any(_NUMBERED.match(line) for line in region):
        return lines
    texts = [one[3] for one in numbered]
    if all(text.startswith(" ") for text in texts if text) and not all(one[2] == "→" for one in numbered):
        texts = [text[1:] for text in texts]
    is_sure = all(one[2].strip() and one[2].strip() in _BARS for one in numbered)
    return tuple(texts) if is_sure or resembles(tuple(texts), region, 0.2) else lines
