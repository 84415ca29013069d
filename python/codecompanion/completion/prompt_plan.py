"""Plans a prompt with project knowledge: the window, the imports, the names to look up, and the remaining room."""

from __future__ import annotations

import re

import msgspec

from codecompanion.completion.imports import imports_outside
from codecompanion.completion.near_names import near_names
from codecompanion.completion.prompt_budgets import budgets, knowledge_at_least, split
from codecompanion.completion.window import PREFIX_CHARS, SUFFIX_CHARS, Window, cut_window
from codecompanion.formats.regex import regex

_IMPORT_LINE = regex(
    r"^[ \t]*(?:from\b|import\b|use\b|require\b|#[ \t]*include\b|(?:local|const|let|var)\b.*\brequire\b).*$",
    re.MULTILINE,
)


class Plan(msgspec.Struct, frozen=True):
    """The parts of a prompt that are fixed before the query of the project with `weights`, and the remaining room."""

    window: Window
    imports: str
    weights: dict[str, float]
    knowledge_chars: int


def plan_prompt(
    path: str, before: str, after: str, total: int, *, head: str = "", anchor: str = "", least: int | None = None
) -> Plan:
    """Plan a prompt of `total` characters for a position in a file.

    `head`: text above `before` that is not adjacent to it; `anchor`: the beginning of the previous prefix, so that this
    prefix starts at the same point (see `steady_start`), or "" to start anywhere; `least`: the number of characters
    that the project needs, if known.
    """
    table = budgets()
    first = split(total, min(len(before), PREFIX_CHARS), min(len(after), SUFFIX_CHARS), least)
    window = cut_window(before, after, prefix=first.prefix, suffix=first.suffix)
    imports = imports_outside(path, msgspec.structs.replace(window, above=head + window.above))
    excess = len(imports) + first.prefix + first.suffix + first.knowledge - total
    if excess > 0:
        # To make room for the imports, the project gives up its surplus over its minimum, and the prefix the rest.
        spare = max(0, first.knowledge - knowledge_at_least(total, least))
        room = max(0, first.prefix - max(0, excess - spare))
        window = cut_window(before, after, prefix=room, suffix=first.suffix)
    if anchor and window.above:
        start = steady_start(before, len(window.prefix), anchor)
        window = msgspec.structs.replace(window, above=before[:start], prefix=before[start:])
    weights = near_names(window.prefix, window.suffix, "\n".join((imports, *_IMPORT_LINE.findall(window.prefix))))
    left = total - len(imports) - len(window.prefix) - len(window.suffix)
    return Plan(window, imports, weights, max(0, min(left, table.max_knowledge)))


def steady_start(text: str, room: int, anchor: str) -> int:
    """Return the start of a prefix of at most `room` characters: at `anchor` while that is near enough.

    If the start moved with every keystroke, the server would have to process the whole prompt again. So the prefix
    starts at a line, a sixth shorter than allowed, and keeps that start until it has grown to the limit.
    """
    earliest = len(text) - room
    at = text.find(anchor, max(0, earliest)) if anchor != NO_ANCHOR else -1
    if 0 <= at <= len(text) - room // 2:
        return at
    line = text.find("\n", earliest + room // 6)
    return earliest if line < 0 else line + 1


NO_ANCHOR = "\0"
"""The `anchor` of a prefix whose start is being chosen for the first time."""
ANCHOR_CHARS = 80


def anchor_of(window: Window) -> str:
    """Return the anchor by which the next plan finds this prefix's start, `NO_ANCHOR` at the start of the file."""
    return window.prefix[:ANCHOR_CHARS] if window.above and window.prefix else NO_ANCHOR
