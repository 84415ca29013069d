"""Reads `doc/dev/rooms.md`: the rooms of each folder in their order, and the long files with their reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PAGE = REPO / "doc" / "dev" / "rooms.md"
_HEADING = re.compile(r"^## ([\w/]+)/$", re.M)
_ROW = re.compile(r"^\| `([^`]+)` \|", re.M)
_LONG = "\n# Long files\n"


def orders(page: str) -> dict[str, tuple[str, ...]]:
    """Return the rooms and files of each folder (`python/codecompanion/session`), from the bottom up."""
    parts = _HEADING.split(page.partition(_LONG)[0])
    return {folder: tuple(_ROW.findall(body)) for folder, body in zip(parts[1::2], parts[2::2], strict=True)}


def long_files(page: str) -> tuple[str, ...]:
    """Return the files that the page lists as long."""
    return tuple(_ROW.findall(page.partition(_LONG)[2]))


def rooms_of(folder: Path, suffix: str) -> set[str]:
    """Return the children of a folder that hold code: `name/` and `name.py`."""
    files = {path.name for path in folder.glob(f"*{suffix}")} - {"__init__.py"}
    return files | {f"{path.name}/" for path in folder.iterdir() if path.is_dir() and any(path.rglob(f"*{suffix}"))}


def against_the_order(arrows: Mapping[str, set[str]], order: Sequence[str], folder: str) -> list[str]:
    """Return a line for each arrow between a folder's rooms that points to a later room.

    `arrows` are those between modules, by dotted names; `folder` is the dotted name of the folder.
    """
    place = {name.rstrip("/").removesuffix(".py").removesuffix(".lua"): number for number, name in enumerate(order)}
    lines = []
    for module, targets in sorted(arrows.items()):
        one = _child(module, folder)
        for target in sorted(targets):
            other = _child(target, folder)
            if one != other and {one, other} <= place.keys() and place[other] > place[one]:
                lines.append(f"{folder}: {one} ({module}) imports {other} ({target}), which is below it in the table")
    return lines


def _child(module: str, folder: str) -> str:
    """Return the child of a folder that a module belongs to: "init" = the folder's own module, "" = none."""
    if module == folder:
        return "init"
    prefix = f"{folder}."
    return module.removeprefix(prefix).partition(".")[0] if module.startswith(prefix) else ""
