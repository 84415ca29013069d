"""The document's `extractSmartSnippets`: finds functions, classes, interfaces, types and variables by patterns (R-243).

There is one pattern per type for TypeScript, JavaScript and Python; they are the fallback for files without a grammar.
A file that the user chose becomes one snippet with its whole text (R-248).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.model.gathered import Snippet
from codecompanion.retrieval.relevance import KEEP_ABOVE, SELECTED_SCORE, score_text

MAX_LINES_AFTER_START = 30
BLOCK_LINES, BLOCK_SCORE = 50, 0.3
_DENSITY = "density"
_SEARCHED = frozenset({"search", "common"})
_EXPORT = r"(?:export[ \t]+)?(?:default[ \t]+)?(?:declare[ \t]+)?"
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("function", regex(rf"^[ \t]*{_EXPORT}(?:async[ \t]+)?function(?:[ \t]*\*[ \t]*|[ \t]+)(\w+)")),
    ("class", regex(rf"^[ \t]*{_EXPORT}(?:abstract[ \t]+)?class[ \t]+(\w+)")),
    ("interface", regex(rf"^{_EXPORT}interface[ \t]+(\w+)")),
    ("type", regex(rf"^{_EXPORT}type[ \t]+(\w+)")),
    ("variable", regex(rf"^{_EXPORT}const[ \t]+(\w+)[ \t]*(?::[^=]+)?=")),
    ("function", regex(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)")),
    ("class", regex(r"^[ \t]*class[ \t]+(\w+)")),
)
"""Patterns for single lines, by type. Functions and classes may be indented (methods); a `const` inside a function does
not match.
"""


def find_elements(lines: Sequence[str], *, indented: bool = True) -> list[tuple[int, str, str]]:
    """Return (line, type, name) of the pattern matches in order; lines are 1-based.

    `indented`: lines may be indented.
    """
    found = list[tuple[int, str, str]]()
    for number, line in enumerate(lines, 1):
        for kind, pattern in _PATTERNS if indented or line[:1] not in (" ", "\t") else ():
            if match := pattern.match(line):
                found.append((number, kind, match.group(1)))
                break
    return found


def extract_smart_snippets(
    path: str, text: str, keywords: Sequence[str], *, until_next: bool = True, indented: bool = True
) -> list[Snippet]:
    """Return the snippets of a file that score above 0.2, from top to bottom.

    A snippet consists of its first line, which may be `indented`, and up to 30 lines after it, but ends at the end of
    the file and, with `until_next`, before the next element. If there are no such snippets but a keyword occurs, the
    first 50 lines are returned as one snippet (`block`, 0.3).
    """
    lines = split_lines(text)
    elements = find_elements(lines, indented=indented)
    found = list[Snippet]()
    for place, (start, kind, name) in enumerate(elements):
        next_start = elements[place + 1][0] if until_next and place + 1 < len(elements) else len(lines) + 1
        end = min(start + MAX_LINES_AFTER_START, next_start - 1, len(lines))
        body = "\n".join(lines[start - 1 : end])
        score = score_text(body, keywords)
        if score > KEEP_ABOVE:
            found.append(Snippet(path=path, start=start, end=end, text=body, kind=kind, name=name, score=score))
    lower = text.lower()
    if not found and any(keyword.lower() in lower for keyword in keywords if keyword):
        end = min(BLOCK_LINES, len(lines))
        found.append(Snippet(path=path, start=1, end=end, text="\n".join(lines[:end]), score=BLOCK_SCORE))
    return found


def score_density(snippets: Sequence[Snippet], keywords: Sequence[str]) -> list[Snippet]:
    """Return the snippets with scores by keyword density (R-246); the user's choices keep their scores."""
    return [one if one.is_selected else _scored(one, score_text(one.text, keywords)) for one in snippets]


def take_structures(
    snippets: Sequence[Snippet], keywords: Sequence[str], *, until_next: bool = True, indented: bool = True
) -> list[Snippet]:
    """Replace the search results with the structures they contain; see `extract_smart_snippets` (R-243).

    A result without pattern matches is unchanged, as are the results of other gatherers.
    """
    extract = partial(extract_smart_snippets, keywords=keywords, until_next=until_next, indented=indented)
    return [part for one in snippets for part in (_structures_in(one, extract) or [one])]


def _structures_in(place: Snippet, extract: Callable[[str, str], list[Snippet]]) -> list[Snippet]:
    if place.is_selected or place.source not in _SEARCHED:
        return []
    found = extract(place.path, place.text)
    moved = place.start - 1
    return [
        msgspec.structs.replace(
            one,
            start=one.start + moved,
            end=one.end + moved,
            source=place.source,
            scores=(*(pair for pair in place.scores if pair[0] != _DENSITY), (_DENSITY, round(one.score, 3))),
        )
        for one in found
    ]


def _scored(one: Snippet, score: float) -> Snippet:
    return msgspec.structs.replace(one, score=score, scores=(*one.scores, (_DENSITY, round(score, 3))))


def whole_file(path: str, text: str) -> Snippet:
    """Return a file the user chose as one snippet, its text unchanged (R-248)."""
    return Snippet(
        path=path,
        start=1,
        end=len(split_lines(text)),
        text=text,
        score=SELECTED_SCORE,
        is_selected=True,
        source="mention",
    )


def split_lines(text: str) -> list[str]:
    """Return the lines of a file as editors count them: only line feeds end lines, optionally also the last one."""
    lines = text.split("\n")
    return lines[:-1] if len(lines) > 1 and lines[-1] == "" else lines
