"""Renders a map of the best files: their definitions as signatures with line numbers, within the budget.

If whole functions no longer fit, the map shows the model where other code is, for far fewer tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from codecompanion.formats.cutting import cut_line
from codecompanion.model.code import Definition
from codecompanion.model.gathered import chars_to_tokens
from codecompanion.retrieval.rendering import shown

MAX_TOKENS = 1200
MIN_TOKENS = 60
"""Minimum tokens of a map; with less room there is none."""
MAX_FILES, MAX_LINES_A_FILE, MAX_LINE_CHARS = 12, 24, 140
_KINDS = frozenset({"class", "interface", "type", "function", "method", "macro", "module"})


def render_map(
    files: Sequence[tuple[str, Sequence[Definition]]],
    shown_lines: Collection[tuple[str, int]],
    max_tokens: int,
    above: Mapping[str, Collection[str]] | None = None,
) -> str:
    """Return the signatures of the files, best file first, within `max_tokens`; "" if nothing fits.

    `shown_lines`: (path, line) of definitions shown in full, which the map omits; it also omits lines of a map that is
    already `above` (path → lines).
    """
    room = min(max_tokens, MAX_TOKENS)
    if room < MIN_TOKENS:
        return ""
    parts = list[str]()
    used = 0
    for path, definitions in files[:MAX_FILES]:
        lines = [line for line in _lines(path, definitions, shown_lines) if line not in (above or {}).get(path, ())]
        head = f"{shown(path)}:"
        kept = list[str]()
        size = used + len(head) + 1
        for line in lines:
            if chars_to_tokens(size + len(line) + 1) > room:
                break
            kept.append(line)
            size += len(line) + 1
        if kept:
            parts += [head, *kept]
            used = size
        if lines and len(kept) < len(lines):
            break
    return "\n".join(parts)


def _lines(path: str, definitions: Sequence[Definition], shown_lines: Collection[tuple[str, int]]) -> list[str]:
    """Return a line for each important definition, in order; methods are indented below their class."""
    wanted = [
        one
        for one in definitions
        if one.kind in _KINDS and (path, one.start) not in shown_lines and one.parent.count(".") < 2
    ]
    if len(wanted) > MAX_LINES_A_FILE:
        outer = [one for one in wanted if not one.parent]
        wanted = outer if len(outer) >= MAX_LINES_A_FILE // 2 else wanted
    return [
        f"{one.line:>6} {'  ' * (one.parent.count('.') + 1 if one.parent else 0)}"
        f"{cut_line(one.signature or f'{one.kind} {one.name}', MAX_LINE_CHARS)}"
        for one in wanted[:MAX_LINES_A_FILE]
    ]
