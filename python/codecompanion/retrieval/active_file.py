"""Chooses which part of the active file is sent as supporting material if the user did not name it (R-214).

The part takes at most a quarter of a small budget and two fifths of a large one; if files are named, it takes only the
tokens they leave. A longer file is reduced to the definition around the cursor and definitions whose names match the
question; failing that, to the lines around the cursor, or the start of the file.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.model.code import Definition
from codecompanion.model.gathered import Snippet, chars_to_tokens
from codecompanion.retrieval.rendering import frame_chars
from codecompanion.retrieval.selection import cut_to_budget
from codecompanion.retrieval.smart_snippets import split_lines

SMALL_SHARE, SMALL_BUDGET = 0.25, 8000
SHARE_ABOVE, MAX_SHARE = 0.5, 0.4
"""Share of the budget above the first 8,000 tokens (a quarter of those is added), and maximum share of the total: 8,000
of 20,000.

Measured (bench_active_file) on 280 commits of eight repositories (four of them not used for fitting): the share of
changed functions that are shown, with a quarter of the budget → with 0.4. If the open file is one that the commit
changes: at 4,000 tokens 0.689 → 0.698, at 20,000 0.814 → 0.837. If it is one that the previous commit changed: at 4,000
0.503 → 0.497, at 20,000 0.686 → 0.695. Half of the budget is never better. On four repositories, the share is 0.457 and
0.651 without the open file, and 0.630 and 0.783 with a quarter of the budget.
"""
_MIN_TERM = 3
_BODIES = frozenset({"function", "method", "macro", "class", "interface", "type"})


def active_room(budget_tokens: int, selected: Sequence[Snippet]) -> int:
    """Return the tokens that the active file may take in addition to the user's choices."""
    frames = sum(chars_to_tokens(frame_chars(one)) for one in selected)
    chosen = sum(one.tokens for one in selected if one.source != "active")
    share = SMALL_SHARE * min(budget_tokens, SMALL_BUDGET) + SHARE_ABOVE * max(0, budget_tokens - SMALL_BUDGET)
    return max(0, min(int(min(share, MAX_SHARE * budget_tokens)), budget_tokens - frames - chosen))


def active_pieces(
    whole: Snippet, definitions: Sequence[Definition], terms: Sequence[str], cursor: int, max_tokens: int
) -> list[Snippet]:
    """Return the parts of the active file to send, in order, within `max_tokens`; [] if nothing fits.

    `terms`: words of the question, lower case; `cursor`: the cursor's line, 1-based, 0 = unknown.
    """
    if whole.tokens <= max_tokens:
        return [whole]
    lines = split_lines(whole.text)
    places = _places(definitions, terms, cursor)
    found, taken, free = list[Snippet](), set[int](), max_tokens
    for start, end, kind, name in places:
        piece = _piece(whole, lines, start, min(end, len(lines)), kind, name)
        cost = piece.tokens + chars_to_tokens(frame_chars(piece))
        if cost <= free and taken.isdisjoint(range(start, end + 1)):
            found.append(piece)
            taken.update(range(start, end + 1))
            free -= cost
    if found:
        return sorted(found, key=lambda one: one.start)
    if 1 < cursor <= len(lines):
        around = _around(whole, lines, cursor, max_tokens)
        return [around] if around is not None else []
    cut = cut_to_budget(whole, max_tokens)
    return [cut] if cut is not None else []


def _places(definitions: Sequence[Definition], terms: Sequence[str], cursor: int) -> list[tuple[int, int, str, str]]:
    """Return the relevant definitions: the one around the cursor first, then the shortest ones that contain a term."""
    bodies = [one for one in definitions if one.kind in _BODIES]
    by_size = sorted(bodies, key=lambda one: one.end - one.start)
    here = [one for one in by_size if one.start <= cursor <= one.end][:1]
    words = [term for term in terms if len(term) >= _MIN_TERM]
    named = [one for one in by_size if any(word in one.name.lower() for word in words)]
    return [(one.start, one.end, one.kind, one.name) for one in (*here, *named)]


def _around(whole: Snippet, lines: Sequence[str], cursor: int, max_tokens: int) -> Snippet | None:
    """Return the lines around the cursor that fit, as many above as below; None if not even the cursor's line fits."""
    free = 4 * max_tokens - len(lines[cursor - 1])
    if free < 0:
        return None
    start = end = cursor
    while True:
        grown = False
        for step in (-1, 1):
            number = start - 1 if step < 0 else end + 1
            if 1 <= number <= len(lines) and len(lines[number - 1]) + 1 <= free:
                free -= len(lines[number - 1]) + 1
                start, end, grown = min(start, number), max(end, number), True
        if not grown:
            return _piece(whole, lines, start, end, "block", "")


def _piece(whole: Snippet, lines: Sequence[str], start: int, end: int, kind: str, name: str) -> Snippet:
    text = "\n".join(lines[start - 1 : end])
    return msgspec.structs.replace(whole, start=start, end=end, text=text, kind=kind, name=name, is_cut=True)
