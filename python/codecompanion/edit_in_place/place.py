"""Where an edit is to be made, as the parts of this room see it: lines, without line ends."""

from __future__ import annotations

from typing import Literal

import msgspec

Placement = Literal["replace", "after", "before", "new", "chat"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that may be replaced, what stands around them, and how the file is indented.

    `region` is empty where only a point between two lines is meant. `width`: columns of one step of indentation.
    """

    region: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    filetype: str = ""
    tabs: bool = False
    width: int = 4


def is_blank(line: str) -> bool:
    """Return whether a line has nothing but white space."""
    return not line.strip()


def resembles(lines: tuple[str, ...], region: tuple[str, ...], share: float = 0.5) -> bool:
    """Return whether at least `share` (0..1) of the region's lines stand among `lines`, whatever their indentation."""
    wanted = [line.strip() for line in region if not is_blank(line)]
    present = {line.strip() for line in lines}
    return bool(wanted) and sum(line in present for line in wanted) >= share * len(wanted)
