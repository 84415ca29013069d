"""A reply that is a diff of the lines, although they were asked for as they shall be."""

from __future__ import annotations

DIFFS = frozenset({"diff", "patch", "udiff"})


def patched(diff: tuple[str, ...], region: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the region with the diff in it; None where a place of the diff is not in the region, or there twice."""
    result = list(region)
    for old, new in _hunks(diff):
        at = _only_place(old, result)
        if at is None:
            return None
        result[at : at + len(old)] = new
    return tuple(result) if tuple(result) != region else None


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
    """Return where `old` stands, if that is one place: what is added to nothing has none."""
    if not old:
        return 0 if not lines else None
    found = [at for at in range(len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
    return found[0] if len(found) == 1 else None
