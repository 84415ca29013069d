"""Searches files that are not in the index yet as text: counts words, and returns the lines around them.

The results have the same form as index hits, so that both can be ranked together and a partial index is usable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.formats.word_rarity import rarity

MAX_FILES = 200
"""Maximum number of files read for one question."""
LINES_AROUND = 12
_NAME_COUNTS = 3
"""Weight of a whole name relative to a word when lines are chosen."""
_WORD = regex(r"[^\W_]+")


FilesWith = Callable[[Collection[str], Sequence[str]], Sequence[str]]
"""A function that returns the paths of files that contain one of the words."""


class TextHit(msgspec.Struct, frozen=True):
    """The best lines of a file. `words`: how often each word of the question occurs in the file."""

    path: str
    start: int
    end: int
    words: tuple[int, ...]
    score: float = 0.0


def richest_first(words: Sequence[str], paths: Sequence[str], files_with: FilesWith) -> Sequence[str]:
    """Return at most `MAX_FILES` paths, files that contain the most of the words first.

    If there are no more than `MAX_FILES` paths, all are returned in their original order, without a search.
    """
    if len(paths) <= MAX_FILES:
        return paths
    contained = Counter(path for word in words for path in files_with((word,), paths))
    return sorted(paths, key=lambda path: -contained[path])[:MAX_FILES]


def search_texts(
    words: Sequence[str], paths: Sequence[str], read: Callable[[str], str | None], names: Sequence[str] = ()
) -> list[TextHit]:
    """Return a hit for each file in `paths` that contains one of the words (lower case), best first.

    `names` of code count as additional words, but match only as a whole: `f_4` does not match in `f_44`.
    """
    whole = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE) for name in names]
    found = ((path, text) for path in paths[:MAX_FILES] if (text := read(path)) is not None)
    hits = [hit for path, text in found if (hit := _hit(path, text, words, whole))]
    return sorted((_scored(hit, hits) for hit in hits), key=lambda hit: (-hit.score, hit.path))


def _hit(path: str, text: str, words: Sequence[str], names: Sequence[re.Pattern[str]]) -> TextHit | None:
    lowered = text.lower()
    counts = (*(lowered.count(word) for word in words), *(len(name.findall(lowered)) for name in names))
    if not any(counts):
        return None
    lines = lowered.split("\n")
    here = [name for name in names if name.search(lowered)]
    worth = [
        sum(word in line for word in words) + _NAME_COUNTS * sum(bool(name.search(line)) for name in here)
        for line in lines
    ]
    best = max(range(len(lines)), key=lambda line: sum(worth[max(line - 3, 0) : line + 4]) + worth[line])
    last = max(len(lines) - lowered.endswith("\n"), 1)
    return TextHit(path, max(best - LINES_AROUND, 0) + 1, min(best + LINES_AROUND + 1, last), counts)


def _scored(hit: TextHit, hits: Sequence[TextHit]) -> TextHit:
    """Return the hit with a BM25-like score: rare words count more, and each repetition counts less."""
    score = 0.0
    for place, count in enumerate(hit.words):
        with_it = sum(bool(other.words[place]) for other in hits)
        if count:
            score += rarity(with_it, len(hits)) * count * 2.2 / (count + 1.2)
    return msgspec.structs.replace(hit, score=score)
