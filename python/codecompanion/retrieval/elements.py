"""The AST search: finds the classes, functions, methods and variables that match the terms (R-222 … R-224).

The files were found by text; this module searches their parse trees. Scores are the document's points, not 0..1
(`selection_score`); but two errors of the document are fixed: hits in code count as hits in code, and classes come
before functions and methods.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from codecompanion.model.code import Definition, ParsedFile
from codecompanion.model.gathered import Snippet
from codecompanion.retrieval.relevance import MAX_SCORE, MIN_SCORE
from codecompanion.retrieval.smart_snippets import split_lines

ElementType = Literal["class", "function", "method", "variable", "other"]

TYPE_POINTS: dict[str, int] = {"class": 10, "method": 8, "function": 8, "variable": 4, "other": 2}
TYPE_ORDER: tuple[ElementType, ...] = ("class", "function", "method", "variable", "other")
FIRST_TERM_POINTS, LAST_TERM_POINTS = 10.0, 1.0
NAME_FACTOR, CHILD_POINTS, CONTAINER_POINTS, LONG_POINTS, HIT_POINTS = 2, 2, 3, 2, 0.5
LONG_CHARS, MIN_COUNTED_HITS = 1000, 3
_TYPES: dict[str, ElementType] = {
    "class": "class",
    "interface": "class",
    "type": "class",
    "function": "function",
    "macro": "function",
    "method": "method",
    "variable": "variable",
    "constant": "variable",
    "heading": "other",
}
_LIMITS = ((50, 5, 0, False), (200, 10, 100, False), (500, 15, 75, True))
_LAST_LIMIT = (20, 50, True)
"""The limits for more elements than any row of `_LIMITS` covers (each row applies below its number of elements):
minimum points, maximum elements (0 = all), and whether only outer elements with a term in the name count.
"""
_FULL_POINTS = 60.0
"""Points that give the highest score of a snippet the user did not choose."""
MAX_OTHER_LINES = 20


class Element(msgspec.Struct, frozen=True, kw_only=True):
    """A definition that contains a term or, in a file without definitions, such a line. `start`, `end`: 1-based."""

    path: str
    type: ElementType
    name: str
    start: int
    end: int
    text: str
    kind: str
    children: int = 0
    name_hits: frozenset[str] = frozenset()
    code_hits: frozenset[str] = frozenset()
    points: float = 0.0


def find_elements_with(path: str, text: str, parsed: ParsedFile, terms: Sequence[str]) -> list[Element]:
    """Return the definitions of a file whose name or code contains a term; without a parse tree, the matching lines."""
    wanted = tuple(term.lower() for term in terms if term.strip())
    lines = split_lines(text)
    if not parsed.is_parsed:
        return _matching_lines(path, lines, wanted)
    found, parents = [], _starts_by_parent(parsed.definitions)
    for definition in parsed.definitions:
        if (kind := _TYPES.get(definition.kind)) is None:
            continue
        body = "\n".join(lines[definition.start - 1 : definition.end])
        names, code = _hits(definition.name, wanted), _hits(body, wanted)
        if names or code:
            found.append(
                Element(
                    path=path,
                    type=kind,
                    name=definition.name,
                    start=definition.start,
                    end=definition.end,
                    text=body,
                    kind=definition.kind,
                    children=_children(definition, parents),
                    name_hits=names,
                    code_hits=code,
                )
            )
    return [with_points(element, wanted) for element in found]


def term_points(terms: Sequence[str]) -> dict[str, float]:
    """Return the points of each term: from 10 for the first down to 1 for the last."""
    steps = max(1, len(terms) - 1)
    fall = (FIRST_TERM_POINTS - LAST_TERM_POINTS) / steps
    return {term: FIRST_TERM_POINTS - fall * place for place, term in reversed(list(enumerate(terms)))}


def with_points(element: Element, terms: Sequence[str]) -> Element:
    """Return the element with its points (R-223); terms are in lower case."""
    worth = term_points(terms)
    hits = len(element.name_hits) + len(element.code_hits)
    points = (
        TYPE_POINTS[element.type]
        + NAME_FACTOR * sum(worth[term] for term in element.name_hits)
        + sum(worth[term] for term in element.code_hits)
        + CHILD_POINTS * element.children
        + (CONTAINER_POINTS if element.type in ("class", "method") else 0)
        - (LONG_POINTS if len(element.text) > LONG_CHARS else 0)
        + (HIT_POINTS * hits if hits >= MIN_COUNTED_HITS else 0)
    )
    return msgspec.structs.replace(element, points=points)


def best_elements(elements: Iterable[Element]) -> list[Element]:
    """Return the best elements by type, then points; the more elements, the stricter the choice (R-224)."""
    unique = {(one.path, one.start, one.type, one.name): one for one in elements}
    count = len(unique)
    least, most, strict = _LAST_LIMIT
    for below, points, limit, is_strict in _LIMITS:
        if count < below:
            least, most, strict = points, limit or count, is_strict
            break
    kept = [one for one in unique.values() if one.points >= least and (one.name_hits or not strict)]
    if strict:
        kept = _without_children(kept)
    best = sorted(kept, key=lambda one: -one.points)[:most]
    return sorted(best, key=lambda one: (TYPE_ORDER.index(one.type), -one.points))


def as_snippet(element: Element) -> Snippet:
    """Return an element as a snippet; its points become a score of 0.1 to 0.9."""
    score = MIN_SCORE + (MAX_SCORE - MIN_SCORE) * min(1.0, max(0.0, element.points) / _FULL_POINTS)
    return Snippet(
        path=element.path,
        start=element.start,
        end=element.end,
        text=element.text,
        kind=element.kind,
        name=element.name,
        score=score,
        source="ast",
        scores=(("points", round(element.points, 2)),),
    )


def _matching_lines(path: str, lines: Sequence[str], terms: Sequence[str]) -> list[Element]:
    found = list[Element]()
    for number, line in enumerate(lines, 1):
        if hits := _hits(line, terms):
            other = Element(
                path=path, type="other", name="", start=number, end=number, text=line, kind="block", code_hits=hits
            )
            found.append(with_points(other, terms))
        if len(found) >= MAX_OTHER_LINES:
            break
    return found


def _hits(text: str, terms: Sequence[str]) -> frozenset[str]:
    lower = text.lower()
    return frozenset(term for term in terms if term in lower)


def _starts_by_parent(definitions: Sequence[Definition]) -> dict[str, list[int]]:
    """Return the first lines of the definitions inside each parent, by the parent's name, in order."""
    starts = dict[str, list[int]]()
    for one in definitions:
        starts.setdefault(one.parent, []).append(one.start)
    return {parent: sorted(found) for parent, found in starts.items()}


def _children(definition: Definition, starts: Mapping[str, Sequence[int]]) -> int:
    own = f"{definition.parent}.{definition.name}" if definition.parent else definition.name
    inside = starts.get(own, ())
    return bisect_right(inside, definition.end) - bisect_left(inside, definition.start)


def _without_children(elements: Sequence[Element]) -> list[Element]:
    """Return the elements that are not inside another element."""
    by_file = dict[str, list[Element]]()
    for one in elements:
        by_file.setdefault(one.path, []).append(one)
    kept = list[Element]()
    for group in by_file.values():
        end = 0
        for one in sorted(group, key=lambda one: (one.start, -one.end)):
            if one.end > end:
                kept.append(one)
                end = one.end
    return kept
