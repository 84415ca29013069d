"""Detects code that is not worth including: fillers, and code that repeats other code in its file.

A client that has `get`, `options`, `head` and `delete` in a synchronous and an asynchronous class repeats the same idea
eight times. One copy is enough; the room goes to different code.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.model.gathered import Snippet
from codecompanion.retrieval.smart_snippets import split_lines

FILLER = "it is too short to be useful"
NOT_WORTH_IT = "better code is already above"
MIN_LINES, MIN_TOKENS = 3, 15
SAME = 0.8
"""Minimum share of common words, relative to all words of two snippets, at which one snippet repeats the other."""
REPEATED_SCORE = 0.8
"""Factor applied to the score of a snippet that repeats a better one in its file."""
_MIN_WORDS = 12
"""Minimum number of different words for comparing a snippet: shorter functions are all alike."""
_AUTOMATIC = frozenset({"ast", "search"})
_WORD = regex(r"[a-z0-9_]+")


def is_filler(snippet: Snippet, terms: Collection[str], *, is_piece: bool = False) -> bool:
    """Return whether to drop a snippet of the AST search or the index because it is useless by itself.

    Such a snippet has fewer than three lines and fewer than 15 tokens, and one of three conditions applies: it is the
    rest of a larger snippet (`is_piece`); it has no name; it is a class whose name is not one of the `terms` (words of
    the question, lower case). All other definitions are kept, however short, as are the user's choices and the results
    of other gatherers. Stricter rules lost one changed function in twenty (bench_gather, click).
    """
    if snippet.source not in _AUTOMATIC or snippet.is_selected:
        return False
    if len(split_lines(snippet.text)) >= MIN_LINES or snippet.tokens >= MIN_TOKENS:
        return False
    return is_piece or not snippet.name or (snippet.kind == "class" and snippet.name.lower() not in terms)


def demote_repeats(snippets: Sequence[Snippet]) -> list[Snippet]:
    """Return the snippets in order, with a lower score for any that repeats a better snippet of the same file."""
    known = dict[str, list[frozenset[str]]]()
    demoted = dict[int, Snippet]()
    places = [place for place, one in enumerate(snippets) if one.source in _AUTOMATIC and not one.is_selected]
    for place in sorted(places, key=lambda place: -snippets[place].score):
        one = snippets[place]
        words = frozenset(_WORD.findall(one.text.lower()))
        if len(words) < _MIN_WORDS:
            continue
        others = known.setdefault(one.path, [])
        if any(_are_alike(words, other) for other in others):
            demoted[place] = msgspec.structs.replace(one, score=one.score * REPEATED_SCORE)
        else:
            others.append(words)
    return [demoted.get(place, one) for place, one in enumerate(snippets)]


def _are_alike(words: frozenset[str], other: frozenset[str]) -> bool:
    if min(len(words), len(other)) < SAME * max(len(words), len(other)):
        return False
    return len(words & other) >= SAME * len(words | other)
