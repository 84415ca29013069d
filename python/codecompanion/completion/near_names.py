"""Weights the names around the cursor by how well they predict the next code."""

from __future__ import annotations

from collections.abc import Mapping

from codecompanion.completion.prompt_budgets import budgets
from codecompanion.formats.regex import regex

NAME = regex(r"[^\W\d]\w{2,}")
"""Matches names of three or more characters; shorter ones are too common to count."""


def near_names(prefix: str, suffix: str, imports: str = "") -> dict[str, float]:
    """Return a weight from 0 to 1 for each name: higher near the cursor, low for names in `imports`."""
    table = budgets().near
    weights: dict[str, float] = {}
    before = prefix.split("\n")[-table.lines_before :]
    after = suffix.split("\n")[: table.lines_after]
    for distance, line in enumerate(reversed(before)):
        _note(weights, line, _fade(distance, table.lines_before, table.farthest))
    for distance, line in enumerate(after):
        _note(weights, line, table.after_share * _fade(distance, table.lines_after, table.farthest))
    _note(weights, imports, table.imported)
    return weights


def _fade(distance: int, lines: int, farthest: float) -> float:
    return 1 - (1 - farthest) * distance / lines


def _note(weights: dict[str, float], text: str, weight: float) -> None:
    for name in NAME.findall(text):
        if weights.get(name, 0) < weight:
            weights[name] = weight


def strongest(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the names to look up with their weights, highest first."""
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[: budgets().near.max_names])
