"""Composes the gathered code from all results, with a map and without repeated lines (R-247 … R-252).

Additions to the document's selection: lines that another snippet shows are left out, an active file that the user did
not name takes a limited part of the budget (`active_file`), named files may exceed the budget for automatic snippets,
and leftover room is used for the signatures of the best files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from codecompanion.memory.labelled_text import shorten_memories
from codecompanion.model.code import Definition
from codecompanion.model.gathered import (
    NAMED_LINES,
    WHOLE_FILES,
    Dropped,
    QuestionTypes,
    Selection,
    Snippet,
    chars_to_tokens,
)
from codecompanion.retrieval.active_file import active_pieces, active_room
from codecompanion.retrieval.assembly import ALL_PARTS, assemble
from codecompanion.retrieval.chosen_files import Wanted, wanted_parts
from codecompanion.retrieval.code_map import MAX_FILES, render_map
from codecompanion.retrieval.gather_pipeline import Part
from codecompanion.retrieval.overlap import lines_of, select_once
from codecompanion.retrieval.relevance import MAX_SCORE
from codecompanion.retrieval.rendering import frame_chars, render_selection
from codecompanion.retrieval.rendering import shown as shown_path
from codecompanion.retrieval.selection import NO_ROOM
from codecompanion.retrieval.shown_lines import NOTHING_ABOVE, Above
from codecompanion.retrieval.snippets_in_view import name_seen, split_seen

TAKEN_OUT = "you removed it"
ADDED_SHARE = 0.5
"""Share of the budget for automatic snippets when named files fill the budget."""
MAX_BESIDE_SHARE = 0.25
"""Maximum share of the whole block for architecture, team and memories together."""
AGREEMENT = 0.05
"""Score bonus for a snippet found by two gatherers."""
_NOTE_CHARS = 100
"""Characters reserved for the note on missing code."""
_MAP_TITLE_TOKENS = 20
_TRIES = 4
_SURE_SHARE = 0.8
"""Share of the room below which code always fits, including headings and notes."""

Definitions = Callable[[str], Sequence[Definition]]
"""A function that returns the definitions in a file, for the map."""


class Composed(msgspec.Struct, frozen=True):
    """The gathered code for a question: the chosen code, the text beside it, and the full rendered text."""

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
    parts: Sequence[Part] = ALL_PARTS,
    max_tokens: int = 0,
    left_out: Collection[tuple[str, int]] = (),
    named_tokens: int = 0,
    terms: Sequence[str] | None = None,
    cursor: int = 0,
    above: Above = NOTHING_ABOVE,
    max_file_tokens: int = 0,
) -> Composed:
    """Return the gathered code for the model.

    `beside`: architecture, team and memories as rendered; `parts`: the parts to include. The whole text, including
    headings, fits into the budget plus its own introduction, and into `max_tokens` (0 = no further limit). `left_out`:
    (path, first line) of snippets the user excluded. `named_tokens`: the limit up to which the budget may grow for
    files the user named, 0 = no growth. `terms` (words of the question) and `cursor` (line, 0 = unknown) select the
    part of the active file; the terms also decide which of the shortest snippets to keep (None = all). Code that is
    unchanged `above` is only mentioned by name. `max_file_tokens`: limit for one file the user named, 0 = no limit.
    """
    taken_out = [one for one in found if (one.path, one.start) in left_out]
    candidates = [one for one in found if (one.path, one.start) not in left_out]
    budget = _with_named(candidates, budget_tokens, named_tokens, above)
    budget = budget if not max_tokens else min(budget, max_tokens)
    bound = budget + _frame_tokens(types, parts)
    max_tokens = min(max_tokens, bound) if max_tokens else bound
    seen = tuple(one for one in beside if above.has_section(one))
    shown = fit_beside([one for one in beside if one not in seen], int(max_tokens * MAX_BESIDE_SHARE))
    composed = Composed(Selection(budget_tokens=budget))
    room = max(0, min(budget, max_tokens - _frame_tokens(types, parts, shown) - chars_to_tokens(len(name_seen(seen)))))
    wanted = _wanted(candidates, definitions, terms or (), min(room, max_file_tokens or room))
    for attempt in range(_TRIES):
        shorter, no_room = _shorter_active(candidates, definitions, terms or (), cursor, room, above)
        selection = select_once(shorter, room, terms, above, wanted, max_file_tokens)
        pieces = [one for one in selection.snippets if (one.path, one.start) in left_out]  # part of a larger one
        stands = (*(one for one in selection.above if (one.path, one.start) not in left_out), *seen)
        selection = msgspec.structs.replace(
            selection,
            snippets=tuple(one for one in selection.snippets if one not in pieces),
            above=stands,
            above_ids=tuple(sorted(above.ids_behind(stands))),
            budget_tokens=budget,
            dropped=(*selection.dropped, *no_room, *(Dropped(one, TAKEN_OUT) for one in (*taken_out, *pieces))),
        )
        composed = _with_text(types, parts, selection, shown, definitions, room, above)
        over = chars_to_tokens(len(composed.text)) - max_tokens
        if over <= 0:
            return composed
        room = max(0, room - (over + 1) * 4**attempt)  # the room shrinks by more than the excess
    return Composed(Selection(budget_tokens=budget))


def _frame_tokens(types: QuestionTypes, parts: Sequence[Part], beside: Sequence[Snippet] = ()) -> int:
    """Return the tokens of the text without its code and map: introduction, titles, notes, text beside the code."""
    return chars_to_tokens(len(assemble(types, parts, "x", beside=beside)) + _NOTE_CHARS)


def joined(*groups: Sequence[Snippet]) -> list[Snippet]:
    """Return the snippets of several gatherers; a snippet that two of them found is merged, with both scores.

    The user's choices are unchanged.
    """
    by_place = dict[tuple[str, int, int, bool], Snippet]()
    for group in groups:
        for one in group:
            known = by_place.get(key := (one.path, one.start, one.end, one.is_selected))
            by_place[key] = one if known is None else known if one.is_selected else _both(known, one)
    return list(by_place.values())


def _both(one: Snippet, other: Snippet) -> Snippet:
    best = max(one, other, key=lambda snippet: snippet.score)
    name = best.name or other.name or one.name
    score = min(MAX_SCORE, best.score + AGREEMENT)
    return msgspec.structs.replace(best, score=score, name=name, scores=one.scores + other.scores)


def _with_named(found: Sequence[Snippet], budget: int, named_tokens: int, above: Above) -> int:
    """Return the budget with room for the files the user named, plus half the budget for other code (R-213, R-248)."""
    named = _to_send([one for one in found if one.is_selected and one.source != "active"], above)
    need = sum(one.tokens + chars_to_tokens(frame_chars(one)) for one in named)
    return max(budget, min(named_tokens, need + int(budget * ADDED_SHARE))) if named else budget


def _to_send(found: Sequence[Snippet], above: Above) -> list[Snippet]:
    """Return the parts that the model cannot already see."""
    return [part for one in found for part in split_seen(one, above)[0]]


def _shorter_active(
    found: Sequence[Snippet], definitions: Definitions, terms: Sequence[str], cursor: int, budget: int, above: Above
) -> tuple[list[Snippet], list[Dropped]]:
    """Return the snippets with the active file reduced to its share; a file that the user named stays whole."""
    shorter, dropped = list[Snippet](), list[Dropped]()
    room = active_room(budget, _to_send([one for one in found if one.is_selected], above))
    for one in found:
        if one.source != "active":
            shorter.append(one)
            continue
        defined = definitions(one.path) if one.tokens > room else ()
        if pieces := active_pieces(one, defined, terms, cursor, room):
            shorter += pieces
        else:
            dropped.append(Dropped(one, NO_ROOM))
    return shorter, dropped


def _wanted(found: Sequence[Snippet], definitions: Definitions, terms: Sequence[str], room: int) -> Wanted:
    """Return the parts of the named files to send first when the files do not fit together."""
    named = [one for one in found if one.source == "mention" and one.kind != NAMED_LINES]
    if sum(one.tokens for one in found if one.is_selected) <= int(_SURE_SHARE * room):
        return {}
    return {one.path: wanted_parts(one, definitions(one.path), found, terms) for one in named}


def _with_text(
    types: QuestionTypes,
    parts: Sequence[Part],
    selection: Selection,
    beside: Sequence[Snippet],
    definitions: Definitions,
    room: int,
    above: Above,
) -> Composed:
    texts = (render_selection(selection) if selection.snippets else "", name_seen(selection.above))
    code = "\n\n".join(filter(None, texts))
    left = room - chars_to_tokens(len(code)) - _MAP_TITLE_TOKENS
    map_text = _map(selection, definitions, left, above) if "map" in parts else ""
    text = assemble(types, parts, code, map_text, beside)
    if map_text:
        beside = (Snippet(path="", start=0, end=0, text=map_text, kind="map", source="map"), *beside)
    return Composed(selection, tuple(beside), text)


def _map(selection: Selection, definitions: Definitions, room: int, above: Above) -> str:
    """Return the signatures of the files with the best snippets, without definitions shown in full."""
    best = dict.fromkeys(one.path for one in (*selection.snippets, *selection.above) if one.path)
    best.update(dict.fromkeys(one.snippet.path for one in selection.dropped if one.why != TAKEN_OUT))
    shown = (*selection.snippets, *selection.above)
    covered = lines_of(shown)
    files_shown = [one for one in shown if one.source in WHOLE_FILES and one.kind != NAMED_LINES]
    whole = {one.path for one in files_shown if one.start == 1 and not one.is_cut}
    files = [(path, definitions(path)) for path in list(best)[:MAX_FILES] if path not in whole] if room > 0 else []
    hidden = {
        (path, one.start)
        for path, found in files
        for one in found
        if covered.get(path, set()).issuperset(range(one.start, one.end + 1))
    }
    known = {path: above.maps.get(shown_path(path), frozenset()) for path, _ in files}
    return render_map(files, hidden, room, known)


def fit_beside(beside: Sequence[Snippet], max_tokens: int) -> tuple[Snippet, ...]:
    """Return the architecture, team and memory text that fits, in that order; newest memories first."""
    kept, room = list[Snippet](), max_tokens
    for one in beside:
        if one.tokens > room and one.source == "memory":
            shorter = shorten_memories(one.text, 4 * room)
            kept += [msgspec.structs.replace(one, text=shorter)] if shorter else []
        elif one.tokens <= room:
            kept.append(one)
            room -= one.tokens
    return tuple(kept)
