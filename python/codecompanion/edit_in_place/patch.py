"""Applies a reply that is a diff instead of the new lines that were requested."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.edit_in_place.indent_change import change_of
from codecompanion.edit_in_place.indentation import text_of
from codecompanion.edit_in_place.quoted import quoted
from codecompanion.edit_in_place.restoring import restored
from codecompanion.wire.requests import EditPlace

DIFFS = frozenset({"diff", "patch", "udiff"})


def patched(diff: tuple[str, ...], place: EditPlace) -> tuple[str, ...] | None:
    """Return the region with the diff applied; None if a hunk fits nowhere in the region, or in several places.

    If a hunk fits except for its indentation, its added lines get the file's indentation.
    """
    result = list(place.region)
    for old, said in _hunks(diff):
        new: Sequence[str] = said
        at = _only_place(old, result)
        if at is None:
            at = _only_place([text_of(line) for line in old], [text_of(line) for line in result])
            if at is None:
                return None
            new = _indented(old, said, tuple(result[at : at + len(old)]), place)
        result[at : at + len(old)] = new
    return tuple(result) if tuple(result) != place.region else None


def _indented(old: list[str], new: list[str], lines: tuple[str, ...], place: EditPlace) -> tuple[str, ...]:
    """Return the new lines of a hunk, indented like the lines of the region that match the hunk's old lines."""
    near = msgspec.structs.replace(place, region=lines)
    change = change_of(quoted(tuple(old), lines), near)
    return restored(change, quoted(tuple(new), lines), near)


def _hunks(diff: tuple[str, ...]) -> list[tuple[list[str], list[str]]]:
    hunks: list[tuple[list[str], list[str]]] = [([], [])]
    for line in diff:
        if line.startswith(("--- ", "+++ ", "diff ", "index ", "\\")):
            continue
        if line.startswith("@@"):
            hunks.append(([], []))
            continue
        sign, text = line[:1], line[1:]
        if sign in ("-", " ", ""):
            hunks[-1][0].append(text)
        if sign in ("+", " ", ""):
            hunks[-1][1].append(text)
    return [hunk for hunk in hunks if hunk[0] or hunk[1]]


def _only_place(old: list[str], lines: list[str]) -> int | None:
    """Return the index of `old` if it occurs exactly once, else None; an empty `old` fits only empty `lines`."""
    if not old:
        return 0 if not lines else None
    found = [at for at in range(len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
    return found[0] if len(found) == 1 else None
