"""Fills the budget greedily, as in the document, but shows no line twice and counts headings and fences (R-247).

The user's files come first and whole, as `selection` chooses them. Later snippets add only lines that are not shown
yet; a large class that matches only by its words is dropped in favour of its parts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from codecompanion.formats.package_table import package_table
from codecompanion.model.gathered import Dropped, Selection, Snippet, chars_to_tokens
from codecompanion.retrieval.chosen_files import Wanted, by_path, fit_chosen, without_shared_lines
from codecompanion.retrieval.filler_code import FILLER, NOT_WORTH_IT, is_filler
from codecompanion.retrieval.line_runs import not_shown
from codecompanion.retrieval.relevance import MIN_SCORE
from codecompanion.retrieval.rendering import frame_chars, heading_chars
from codecompanion.retrieval.selection import NO_ROOM, without_duplicates
from codecompanion.retrieval.shown_lines import NOTHING_ABOVE, Above
from codecompanion.retrieval.snippets_in_view import name_seen, split_seen

TOO_LARGE = "it is large, and parts of it match better"
MAX_CONTAINER_SHARE = 0.1
"""Maximum share of the budget for a class when there are also results from the index; a larger class takes the room of
ten better places.
"""
_CONTAINERS = frozenset({"class", "interface", "module", "namespace"})

Lines = Mapping[str, set[int]]
"""Maps paths to the numbers of the lines that are shown."""


def select_once(
    candidates: Sequence[Snippet],
    budget_tokens: int,
    terms: Collection[str] | None = None,
    above: Above = NOTHING_ABOVE,
    wanted: Wanted | None = None,
    max_file_tokens: int = 0,
) -> Selection:
    """Return the snippets that fit into the budget as rendered, best first; no line is shown twice.

    A snippet whose lines are all shown already is neither kept nor dropped; a partly shown snippet is reduced to its
    other lines. `terms`: words of the question; with them, snippets too short to be useful are dropped unless the
    question asks for them. Code that the model still sees `above` costs only the length of its name, and is named up to
    the size of the budget. The room that this frees goes to snippets that are worth it (`_Freed`). `wanted`,
    `max_file_tokens`: see `fit_chosen`.
    """
    ordered = sorted(without_duplicates(candidates), key=lambda one: (not one.is_selected, -one.score))
    chosen = [one for one in ordered if one.is_selected]
    split = [split_seen(one, above) for of in by_path(chosen).values() for one in without_shared_lines(of)]
    new = [part for parts, _ in split for part in parts]
    seen = _Seen(4 * budget_tokens)
    for _, parts in split:
        seen.take(parts, 4 * budget_tokens, is_chosen=True)
    frames = chars_to_tokens(sum(map(frame_chars, new)) + seen.named_chars)
    asked = {path: [one for one in of if one.source == "pinned"] for path, of in by_path(chosen).items()}
    for path, first in (wanted or {}).items():
        asked.setdefault(path, []).extend(first)
    kept, dropped = fit_chosen(new, max(0, budget_tokens - frames), asked, max_file_tokens)
    covered = lines_of((*kept, *seen.parts))
    in_block = {one.path for one in kept}
    free = 4 * budget_tokens - sum(frame_chars(one) + len(one.text) for one in kept)
    freed = _Freed(ordered[len(chosen) :], free, 4 * budget_tokens, sum(len(one.text) for one in seen.parts))
    is_indexed = any(one.source == "search" for one in ordered)
    for one in ordered[len(chosen) :]:
        if is_indexed and _is_large_container(one, budget_tokens):
            dropped.append(Dropped(one, TOO_LARGE))
            continue
        if terms is not None and is_filler(one, terms):
            dropped.append(Dropped(one, FILLER))
            continue
        parts, known = split_seen(one, above)
        pieces = [piece for part in parts for piece in not_shown(part, covered.get(one.path, set()))]
        if terms is not None and pieces != [one]:
            pieces = [piece for piece in pieces if not is_filler(piece, terms, is_piece=True)]
        chars = sum(frame_chars(piece) - heading_chars(one.path) + len(piece.text) for piece in pieces)
        chars += 0 if one.path in in_block else heading_chars(one.path)
        if pieces and chars > free - seen.named_chars:
            dropped.append(Dropped(one, NO_ROOM))
            continue
        if pieces and not freed.takes(one, chars):
            dropped.append(Dropped(one, NOT_WORTH_IT))
            continue
        if pieces:
            kept += pieces
            free -= chars
            in_block.add(one.path)
        freed.is_above(known)
        seen.take([part for run in known for part in not_shown(run, covered.get(one.path, set()))], free)
        covered.setdefault(one.path, set()).update(*(range(part.start, part.end + 1) for part in (*pieces, *known)))
    missing = tuple(one for one in dropped if not is_shown(one.snippet, covered))
    return Selection(snippets=tuple(kept), dropped=missing, above=tuple(seen.parts), budget_tokens=budget_tokens)


class _Freed:
    """The room freed by code that is already above, and the minimum score at which other snippets may use it.

    If most results for a question are already above, the question was probably asked before, and the free room does not
    justify weak matches: each repetition would return worse code. `left`: the characters that would remain if the code
    above were sent; if the user chose files, at least half of the budget, as when they are sent.
    """

    def __init__(self, found: Sequence[Snippet], free: int, budget_chars: int, chosen_above: int) -> None:
        table = package_table("retrieval/budgets.toml")["freed_room"]
        self.left = max(free - chosen_above, min(free, budget_chars // 2))
        self._above, self._asked_before = chosen_above, table["asked_before_share"] * self.left
        best = max((one.score for one in found), default=0.0)
        self._floor = MIN_SCORE + table["floor_share"] * (best - MIN_SCORE)

    def takes(self, one: Snippet, chars: int) -> bool:
        """Return whether to send a snippet, and if so, subtract its characters from `left`."""
        if chars > self.left and self._above > self._asked_before and one.score < self._floor:
            return False
        self.left -= chars
        return True

    def is_above(self, parts: Sequence[Snippet]) -> None:
        """Count the characters of parts that are above as if they had been sent."""
        chars = sum(len(one.text) for one in parts)
        self.left -= chars
        self._above += chars


class _Seen:
    """The code that is only named because it is still above: the user's files, and other snippets up to the budget."""

    def __init__(self, max_chars: int) -> None:
        self._left, self.parts = max_chars, list[Snippet]()
        self.named_chars = 0

    def take(self, parts: Sequence[Snippet], free: int, *, is_chosen: bool = False) -> None:
        """Add these parts unless they exceed the room that is left; naming them uses some of the `free` characters."""
        chars = sum(len(part.text) for part in parts) if not is_chosen else 0
        named_chars = len(name_seen((*self.parts, *parts))) + len("\n\n") if parts else 0
        if parts and chars <= self._left and named_chars <= free:
            self._left -= chars
            self.parts += parts
            self.named_chars = named_chars


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
