"""From everything that was found to what goes to the model (R-247 … R-252, and issue 11: no line twice, a map).

Beside the document's selection: lines that another snippet shows are left out, the active file takes half of the budget
at most when nobody named it, and what the budget leaves over shows the signatures of the best files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from codecompanion.model.code import Definition
from codecompanion.model.gathered import Dropped, QuestionTypes, Selection, Snippet, chars_to_tokens
from codecompanion.retrieval.assembly import assemble
from codecompanion.retrieval.code_map import render_map
from codecompanion.retrieval.relevance import MAX_SCORE
from codecompanion.retrieval.rendering import render_selection
from codecompanion.retrieval.selection import cut_to_budget, select_snippets

TAKEN_OUT = "you took it out"
ACTIVE_SHARE = 0.5
MAX_BESIDE_SHARE = 0.25
"""Of the room for the whole block, for architecture, team and memories together."""
AGREEMENT = 0.05
"""More for a snippet that two gatherers found."""
_TRIES = 4

Definitions = Callable[[str], Sequence[Definition]]
"""What is defined in a file, for the map."""


class Composed(msgspec.Struct, frozen=True):
    """The code that was chosen, what stands beside it, and the whole text."""

    selection: Selection
    beside: tuple[Snippet, ...] = ()
    text: str = ""


def compose(
    types: QuestionTypes,
    found: Sequence[Snippet],
    beside: Sequence[Snippet],
    definitions: Definitions,
    budget_tokens: int,
    *,
    max_tokens: int = 0,
    left_out: Collection[tuple[str, int]] = (),
) -> Composed:
    """Return what goes to the model.

    `beside`: architecture, team and memories as they stand in the text. `max_tokens` bounds the whole text, headings
    included, 0 = no bound; `left_out`: (path, first line) of what the user does not want.
    """
    taken_out = [one for one in found if (one.path, one.start) in left_out]
    candidates = [one for one in found if (one.path, one.start) not in left_out]
    budget = budget_tokens if not max_tokens else min(budget_tokens, max_tokens)
    shown = _fit_beside(beside, int(max_tokens * MAX_BESIDE_SHARE) if max_tokens else 0)
    composed = Composed(Selection(budget_tokens=budget))
    room = budget
    for _ in range(_TRIES):
        selection = _select(candidates, room)
        selection = msgspec.structs.replace(
            selection,
            budget_tokens=budget,
            dropped=(*selection.dropped, *(Dropped(one, TAKEN_OUT) for one in taken_out)),
        )
        composed = _with_text(types, selection, shown, definitions, room)
        over = chars_to_tokens(len(composed.text)) - max_tokens
        if not max_tokens or over <= 0:
            return composed
        room = max(0, room - over - 1)
    return composed if chars_to_tokens(len(composed.text)) <= max_tokens else Composed(Selection(budget_tokens=budget))


def joined(*groups: Sequence[Snippet]) -> list[Snippet]:
    """Return the snippets of several gatherers; one that two of them found is one, with the scores of both."""
    by_place = dict[tuple[str, int, int], Snippet]()
    for group in groups:
        for one in group:
            known = by_place.get(key := (one.path, one.start, one.end))
            by_place[key] = one if known is None else _both(known, one)
    return list(by_place.values())


def _both(one: Snippet, other: Snippet) -> Snippet:
    best = max(one, other, key=lambda snippet: snippet.score)
    name = best.name or other.name or one.name
    score = min(MAX_SCORE, best.score + AGREEMENT)
    return msgspec.structs.replace(best, score=score, name=name, scores=one.scores + other.scores)


def _select(candidates: Sequence[Snippet], budget: int) -> Selection:
    """Return the document's selection of candidates that show no line twice."""
    wanted = [_shorter_active(one, budget) for one in candidates]
    selection = select_snippets(wanted, budget)
    for _ in range(_TRIES):
        twice = _shown_twice(selection.snippets)
        if not twice:
            break
        wanted = [one for one in wanted if (one.path, one.start, one.end) not in twice or one.is_selected]
        selection = select_snippets(wanted, budget)
    covered = _lines(selection.snippets)
    dropped = tuple(one for one in selection.dropped if not _is_shown(one.snippet, covered))
    return msgspec.structs.replace(selection, dropped=dropped)


def _shorter_active(snippet: Snippet, budget: int) -> Snippet:
    """Return the active file in at most half of the budget; what the user named is not shortened here."""
    if snippet.source != "active":
        return snippet
    return cut_to_budget(snippet, int(budget * ACTIVE_SHARE)) or snippet


def _shown_twice(snippets: Sequence[Snippet]) -> set[tuple[str, int, int]]:
    """Return those of which another snippet, that stands before them, shows most lines."""
    twice, covered = set[tuple[str, int, int]](), dict[str, set[int]]()
    for one in snippets:
        lines = set(range(one.start, one.end + 1))
        known = covered.setdefault(one.path, set())
        if len(lines & known) * 2 > len(lines):
            twice.add((one.path, one.start, one.end))
        else:
            known |= lines
    return twice


def _lines(snippets: Sequence[Snippet]) -> Mapping[str, set[int]]:
    covered = dict[str, set[int]]()
    for one in snippets:
        covered.setdefault(one.path, set()).update(range(one.start, one.end + 1))
    return covered


def _is_shown(snippet: Snippet, covered: Mapping[str, set[int]]) -> bool:
    return covered.get(snippet.path, set()).issuperset(range(snippet.start, snippet.end + 1))


def _with_text(
    types: QuestionTypes, selection: Selection, beside: Sequence[Snippet], definitions: Definitions, room: int
) -> Composed:
    code = render_selection(selection) if selection.snippets else ""
    map_text = _map(selection, definitions, room - selection.total_tokens)
    if map_text:
        beside = (Snippet(path="", start=0, end=0, text=map_text, kind="map", source="map"), *beside)
    texts = {one.source: one.text for one in beside}
    text = assemble(
        types, code, map_text, texts.get("architecture", ""), texts.get("team", ""), texts.get("memory", "")
    )
    return Composed(selection, tuple(beside), text)


def _map(selection: Selection, definitions: Definitions, room: int) -> str:
    """Return the signatures of the files that have the best snippets, without what is shown in full."""
    best = dict.fromkeys(one.path for one in selection.snippets)
    best.update(dict.fromkeys(one.snippet.path for one in selection.dropped if one.why != TAKEN_OUT))
    covered = _lines(selection.snippets)
    files = [(path, definitions(path)) for path in list(best)[:12]] if room > 0 else []
    hidden = {
        (path, one.start)
        for path, found in files
        for one in found
        if covered.get(path, set()).issuperset(range(one.start, one.end + 1))
    }
    return render_map(files, hidden, room)


def _fit_beside(beside: Sequence[Snippet], max_tokens: int) -> tuple[Snippet, ...]:
    """Return what fits of architecture, team and memories, in that order; 0 = all of it."""
    kept, used = list[Snippet](), 0
    for one in beside:
        if not max_tokens or used + one.tokens <= max_tokens:
            kept.append(one)
            used += one.tokens
    return tuple(kept)
