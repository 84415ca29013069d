"""Predicates on the lines of an edit's region (`requests.EditPlace`), and the tag that marks them."""

from __future__ import annotations

from typing import Literal

from codecompanion.wire.requests import EditPlace

Placement = Literal["replace", "after", "before", "new", "chat"]


def is_blank(line: str) -> bool:
    """Return whether a line has only white space."""
    return not line.strip()


def resembles(lines: tuple[str, ...], region: tuple[str, ...], share: float = 0.5) -> bool:
    """Return whether at least a `share` (0..1) of the region's lines are among `lines`, with any indentation."""
    wanted = [line.strip() for line in region if not is_blank(line)]
    present = {line.strip() for line in lines}
    return bool(wanted) and sum(line in present for line in wanted) >= share * len(wanted)


def marker_of(place: EditPlace) -> str:
    """Return a tag name for marking the lines; it does not occur in the region or near it."""
    text = "\n".join((*place.region, *place.before, *place.after))
    name, number = "edit", 1
    while f"<{name}>" in text or f"</{name}>" in text:
        number += 1
        name = f"edit-{number}"
    return name
