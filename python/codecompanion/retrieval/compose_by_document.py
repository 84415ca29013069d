"""Composes the gathered code as the document does (R-247 … R-252).

The code is the result of `select_snippets`, which the `select` command prints by itself. Unlike `compose.py`, it does
not leave out code that is already above, and has no map.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from codecompanion.model.gathered import Dropped, QuestionTypes, Snippet, chars_to_tokens
from codecompanion.retrieval.assembly import assemble
from codecompanion.retrieval.compose import MAX_BESIDE_SHARE, TAKEN_OUT, Composed, fit_beside
from codecompanion.retrieval.gather_pipeline import Part
from codecompanion.retrieval.rendering import render_selection
from codecompanion.retrieval.selection import select_snippets


def compose_by_document(
    types: QuestionTypes,
    found: Sequence[Snippet],
    beside: Sequence[Snippet],
    budget_tokens: int,
    parts: Sequence[Part],
    *,
    max_tokens: int = 0,
    left_out: Collection[tuple[str, int]] = (),
    cut_named: bool = True,
) -> Composed:
    """Return the gathered code for the model; see `compose` and `select_snippets`.

    The budget is for the code only. `max_tokens` limits the whole text to the free part of the context window (0 = no
    limit): code is dropped until the text fits.
    """
    candidates = [one for one in found if (one.path, one.start) not in left_out]
    taken_out = tuple(Dropped(one, TAKEN_OUT) for one in found if (one.path, one.start) in left_out)
    shown = fit_beside(beside, int(max_tokens * MAX_BESIDE_SHARE)) if max_tokens else tuple(beside)
    room = min(budget_tokens, max_tokens) if max_tokens else budget_tokens
    while True:
        chosen = select_snippets(candidates, room, cut_named=cut_named)
        selection = msgspec.structs.replace(chosen, budget_tokens=budget_tokens, dropped=(*chosen.dropped, *taken_out))
        text = assemble(types, parts, render_selection(selection) if selection.snippets else "", beside=shown)
        over = chars_to_tokens(len(text)) - max_tokens if max_tokens else 0
        if over <= 0:
            return Composed(selection, shown, text)
        if not selection.snippets:
            return Composed(selection)
        room = max(0, min(room, chosen.total_tokens) - over)
