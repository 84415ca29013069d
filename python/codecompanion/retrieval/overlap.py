"""The document's greedy choice for a text that shows no line twice, headings and fences counted (issue 11, R-247).

The user's files come first and whole, as `selection` chooses them. Of what follows only the lines go in that do not
stand there yet; a large class that words alone found gives way to its parts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from codecompanion.model.gathered import Dropped, Selection, Snippet, chars_to_tokens
from codecompanion.retrieval.rendering import frame_chars, heading_chars
from codecompanion.retrieval.selection import NO_ROOM, select_snippets, without_duplicates
from codecompanion.retrieval.smart_snippets import split_lines
from codecompanion.retrieval.worth_showing import FILLER, is_filler

TOO_LARGE = "it is large, and places inside of it answer better"
MAX_CONTAINER_SHARE = 0.1
"""Of the budget, for a class beside what the index found; a larger one takes the room of ten better places."""
_CONTAINERS = frozenset({"class", "interface", "module", "namespace"})

Lines = Mapping[str, set[int]]
"""Path → numbers of the lines that are shown."""


def select_once(candidates: Sequence[Snippet], budget_tokens: int, terms: Collection[str] | None = None) -> Selection:
    """Return what fits into the budget as it is rendered, best first; no line twice but where the user chose a file.

    What is shown already is neither kept nor dropped. A snippet of which some lines are shown becomes its other lines.
    `terms`: words of the question; what is too short to say anything is dropped then, unless it is asked for.
    """
    ordered = sorted(without_duplicates(candidates), key=lambda one: (not one.is_selected, -one.score))
    chosen = [one for one in ordered if one.is_selected]
    frames = chars_to_tokens(sum(map(frame_chars, chosen)))
    selection = select_snippets(chosen, max(0, budget_tokens - frames))
    kept, dropped = list(selection.snippets), list(selection.dropped)
    covered = lines_of(kept)
    free = 4 * budget_tokens - sum(frame_chars(one) + len(one.text) for one in kept)
    is_indexed = any(one.source == "search" for one in ordered)
    for one in ordered[len(chosen) :]:
        if is_indexed and _is_large_container(one, budget_tokens):
            dropped.append(Dropped(one, TOO_LARGE))
            continue
        if terms is not None and is_filler(one, terms):
            dropped.append(Dropped(one, FILLER))
            continue
        pieces = _not_shown(one, covered.get(one.path, set()))
        if terms is not None and pieces != [one]:
            pieces = [piece for piece in pieces if not is_filler(piece, terms, is_piece=True)]
        chars = sum(frame_chars(piece) - heading_chars(one.path) + len(piece.text) for piece in pieces)
        chars += 0 if one.path in covered else heading_chars(one.path)
        if chars > free:
            dropped.append(Dropped(one, NO_ROOM))
        elif pieces:
            kept += pieces
            free -= chars
            covered.setdefault(one.path, set()).update(*(range(piece.start, piece.end + 1) for piece in pieces))
    missing = tuple(one for one in dropped if not is_shown(one.snippet, covered))
    return Selection(snippets=tuple(kept), dropped=missing, budget_tokens=budget_tokens)


def lines_of(snippets: Sequence[Snippet]) -> dict[str, set[int]]:
    """Return the lines that snippets show."""
    covered = dict[str, set[int]]()
    for one in snippets:
        covered.setdefault(one.path, set()).update(range(one.start, one.end + 1))
    return covered


def is_shown(snippet: Snippet, covered: Lines) -> bool:
    """Return whether all lines of a snippet are shown."""
    return covered.get(snippet.path, set()).issuperset(range(snippet.start, snippet.end + 1))


def _is_large_container(snippet: Snippet, budget_tokens: int) -> bool:
    is_by_words = snippet.source == "ast" and snippet.kind in _CONTAINERS
    return is_by_words and snippet.tokens > MAX_CONTAINER_SHARE * budget_tokens


def _not_shown(snippet: Snippet, shown: set[int]) -> list[Snippet]:
    """Return the runs of lines of a snippet that are not shown and say something."""
    if shown.isdisjoint(range(snippet.start, snippet.end + 1)):
        return [snippet]
    lines = split_lines(snippet.text)
    if len(lines) != snippet.end - snippet.start + 1:
        return []  # its lines cannot be told apart
    pieces, run = list[Snippet](), list[str]()
    for number, line in enumerate([*lines, ""], snippet.start):
        is_new = number <= snippet.end and number not in shown
        if is_new:
            run.append(line)
        elif run:
            if any(map(str.isalnum, "".join(run))):
                pieces.append(_piece(snippet, number - len(run), run))
            run = []
    return pieces


def _piece(snippet: Snippet, start: int, lines: Sequence[str]) -> Snippet:
    return msgspec.structs.replace(snippet, start=start, end=start + len(lines) - 1, text="\n".join(lines))
