"""Describes why a file matters to the work: it was edited, read, or named by the user (R-314, R-318)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codecompanion.context.artifact.artifact import Episode

_WORDS = {
    "created": "created",
    "edited": "edited",
    "deleted": "deleted",
    "read": "read",
    "ran": "run",
    "used": "used",
    "named": "named by the user",
}
_CHANGES = ("created", "edited", "deleted")


def summed_uses(episodes: Iterable[Episode]) -> dict[str, dict[str, int]]:
    """Return the uses of each file over all episodes; `named` counts once."""
    found: dict[str, dict[str, int]] = {}
    for episode in episodes:
        for path, uses in episode.file_uses.items():
            known = found.setdefault(path, {})
            for use, times in uses.items():
                known[use] = 1 if use == "named" else known.get(use, 0) + times
    return found


def importance(uses: Mapping[str, int]) -> tuple[bool, bool]:
    """Return the sort key of a file: changed files rank above files the user named, which rank above the others."""
    return any(use in uses for use in _CHANGES), "named" in uses


def in_words(uses: Mapping[str, int]) -> str:
    """Return the uses in words, such as `edited ×2, read ×3, named by the user`."""
    return ", ".join(f"{word} ×{uses[use]}" if uses[use] > 1 else word for use, word in _WORDS.items() if use in uses)
