"""Searches the memory: ranks entries by the words of a query that they contain; rare words count more.

Query words match at the beginning of a word, without the endings of English plurals and verbs; in languages without
spaces between words (Chinese, Japanese) they match anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from codecompanion.formats.cutting import cut_line
from codecompanion.formats.regex import regex
from codecompanion.formats.word_rarity import rarity
from codecompanion.memory.entries import Entry

MAX_WORDS = 24
MAX_HITS = 10
MAX_LINES = 3
"""Maximum number of lines of an entry that a hit shows."""
MAX_LINE_CHARS = 300
_WORD = regex(r"\w+")
_ENDINGS = ("ing", "ed", "es", "s")
_MIN_STEM = 3
_TITLE_WEIGHT = 2.0
_COMMON = frozenset(
    """a an and are as at be by did do does for from has have how i in is it of on or our that the this to was we what
    when where which who why will with you""".split()
)


class Hit(msgspec.Struct, frozen=True):
    """An entry that contains words of the query, and the lines that contain most of them."""

    entry: Entry
    lines: tuple[str, ...]


class _Match(msgspec.Struct, frozen=True):
    entry: Entry
    in_text: frozenset[int]
    in_title: frozenset[int]


def words_of(query: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of a query's words, without common words unless there are no others; () without words."""
    words = dict.fromkeys(_WORD.findall(query.casefold()))
    telling = [word for word in words if word not in _COMMON] or [*words]
    return tuple(re.compile(_pattern(word)) for word in dict.fromkeys(map(_stem, telling[:MAX_WORDS])))


def search(entries: Iterable[Entry], query: str, limit: int = MAX_HITS) -> tuple[Hit, ...]:
    """Return the entries that have words of the query, best first, then newest first; () for an empty query."""
    words = words_of(query)
    matches = [match for entry in entries if words and (match := _match(entry, words)) is not None]
    weights = [_weight(sum(place in match.in_text for match in matches), len(matches)) for place in range(len(words))]

    def worth(match: _Match) -> float:
        in_title = sum(weights[place] for place in match.in_title)
        return sum(weights[place] for place in match.in_text) + _TITLE_WEIGHT * in_title

    best = sorted(matches, key=lambda match: (worth(match), match.entry.time), reverse=True)[:limit]
    return tuple(Hit(match.entry, _best_lines(match.entry.text, words, weights)) for match in best)


def _match(entry: Entry, words: Sequence[re.Pattern[str]]) -> _Match | None:
    title, text = entry.title.casefold(), entry.text.casefold()
    in_title = frozenset(place for place, word in enumerate(words) if word.search(title))
    in_text = frozenset(place for place, word in enumerate(words) if place in in_title or word.search(text))
    return _Match(entry, in_text, in_title) if in_text else None


def _best_lines(text: str, words: Sequence[re.Pattern[str]], weights: Sequence[float]) -> tuple[str, ...]:
    """Return the lines with the most words of the query, in order, or the first line if no line matches."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    found = [[place for place, word in enumerate(words) if word.search(line.casefold())] for line in lines]
    worth = {number: sum(weights[place] for place in places) for number, places in enumerate(found) if places}
    best = sorted(sorted(worth, key=lambda number: worth[number], reverse=True)[:MAX_LINES]) or range(len(lines[:1]))
    return tuple(cut_line(lines[number], MAX_LINE_CHARS) for number in best)


def _weight(having: int, of: int) -> float:
    return rarity(having, of) + 0.1


def _stem(word: str) -> str:
    ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= _MIN_STEM), "")
    return word[: len(word) - len(ending)] if ending and word.isascii() else word


def _pattern(word: str) -> str:
    return rf"(?<![^\W_]){re.escape(word)}" if word.isascii() else re.escape(word)
