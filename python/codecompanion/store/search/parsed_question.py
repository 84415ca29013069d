"""Parses a search question into words, names, paths and days (R-516), without a database or a clock.

Question words ("what", "did", "the") are dropped as long as others remain. A word matches all its forms; a name such as
`parseTable`, `read_file` or `src/app.ts` matches itself and, with less weight, the words inside it.
"""

from __future__ import annotations

import datetime
import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.store.log.words_inside_words import pairs_of, pieces_of, unspaced_runs
from codecompanion.store.search.periods import Period, find_periods

MAX_TERMS = 32
"""Maximum number of terms from a long question (such as a pasted traceback): names first, then words in order."""

_WORD = regex(r"[^\W_]+")
_QUOTED = regex(r'"([^"]+)"|“([^“”]+)”|«([^«»]+)»')
_JOINED = regex(r"(?<!\w)(?:\w+(?:(?:->|[./\\:-])+\w+)+|\w*_\w+)", re.ASCII)
_ASKS_WHEN = regex(r"\W*(?:when|how long ago|(?:on )?(?:what|which) (?:date|day|month|year))\b", re.IGNORECASE)

_OF_A_NAME = 0.5
_OF_A_PATH = 2.0
_OF_A_PAIR = 1.0
_QUOTED_WEIGHT = 2.0


class Term(msgspec.Struct, frozen=True):
    """A search term as two FTS5 queries, one on the text and one on the inner words ("" for no query).

    A `bonus` applies only to messages that contain the term; other terms also raise the score of neighbouring messages.
    """

    in_text: str
    in_names: str = ""
    weight: float = 1.0
    bonus: bool = False


class Question(msgspec.Struct, frozen=True):
    """A parsed question: `count` distinct terms from `words` meaningful words.

    `whole` matches its words as a phrase. The `last_word` may be a prefix.
    """

    terms: tuple[Term, ...]
    whole: str
    any_word: str
    last_word: str = ""
    periods: tuple[Period, ...] = ()
    asks_when: bool = False
    count: int = 0
    words: int = 0


def has_words(text: str) -> bool:
    """Return whether the text contains a word to search for."""
    return _WORD.search(text) is not None


def read_question(text: str, today: datetime.date) -> Question:
    """Return the parsed question; "yesterday" is relative to `today`."""
    words = _WORD.findall(text.lower())
    content = [word for word in dict.fromkeys(words) if word not in _stop_words()]
    terms = [*_names(text), *_words(content), *_pairs(words), *_quoted(text)]
    terms = list(dict.fromkeys(terms))[:MAX_TERMS]
    return Question(
        terms=tuple(terms),
        whole=_phrase(words),
        any_word=_any(dict.fromkeys(words)),
        last_word=content[-1] if content and words[-1] == content[-1] else "",
        periods=tuple(find_periods(text, today)),
        asks_when=_ASKS_WHEN.match(text) is not None,
        count=sum(not term.bonus for term in terms),
        words=_count_words(text),
    )


def _count_words(text: str) -> int:
    """Return the number of meaningful words typed; a path counts as one, as do four letters of unspaced writing."""
    stop, count = _stop_words(), 0
    for chunk in text.lower().split():
        if not stop.issuperset(_WORD.findall(chunk)):
            count += max(1, sum(len(run) for run in unspaced_runs(chunk)) // 4)
    return count


def _names(text: str) -> Iterator[Term]:
    """Yield terms for paths and names made of several words, which weigh more when adjacent than apart."""
    for joined in _JOINED.findall(text):
        words = _WORD.findall(joined.lower())
        if len(words) > 1:
            yield Term(_side_by_side(words), "", _OF_A_PATH, bonus=True)
        file = _WORD.findall(re.split(r"[/\\]", joined.lower())[-1])
        if 1 < len(file) < len(words):
            yield Term(_side_by_side(file), "", _OF_A_PATH, bonus=True)
    for name in _WORD.findall(text):
        for piece in pieces_of(name) if name.isascii() else ():
            yield Term(_phrase([piece]), _phrase([piece]), _OF_A_NAME)


def _words(content: list[str]) -> Iterator[Term]:
    seen: set[str] = set()
    for word in content:
        if word in seen:
            continue
        forms = _forms().get(word, (word,))
        seen.update(forms)
        runs = unspaced_runs(word)
        if runs:
            yield Term(_phrase([word]))
            for pair in dict.fromkeys(pair for run in runs for pair in pairs_of(run)):
                yield Term("", _phrase([pair]) + ("*" if len(pair) == 1 else ""))
        else:
            yield Term(_any(forms), _any(forms))


def _pairs(words: list[str]) -> Iterator[Term]:
    """Yield pairs of adjacent meaningful words."""
    stop = _stop_words()
    for pair in itertools.pairwise(words):
        if stop.isdisjoint(pair):
            yield Term(_side_by_side(pair), "", _OF_A_PAIR, bonus=True)


def _quoted(text: str) -> Iterator[Term]:
    for groups in _QUOTED.findall(text):
        words = _WORD.findall("".join(groups).lower())
        if len(words) > 1:
            yield Term(_phrase(words), "", _QUOTED_WEIGHT, bonus=True)


def _phrase(words: Sequence[str]) -> str:
    """Return the words as an FTS5 phrase; they consist of letters and digits only."""
    return f'"{" ".join(words)}"' if words else ""


def _side_by_side(words: Sequence[str]) -> str:
    """Return a query for the words as a phrase or joined into one word: `parse_table` also finds `parseTable`."""
    return f'{_phrase(words)} OR "{"".join(words)}"'


def _any(words: Iterable[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)


@cache
def _table() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("question_words.toml").read_text("utf-8"))


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(_table()["stop"].split())


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    lines = [tuple(line.split()) for line in _table()["forms"].splitlines() if line]
    return {form: forms for forms in lines for form in forms}
