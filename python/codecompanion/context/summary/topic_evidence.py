"""Finds evidence that a summary is about a history: shared words, names and word pairs (R-526).

One rule covers sections, free text and artifacts; all its constants are fitted to the replies in `tests/external`.

- A known name (identifier, path, number of four digits) is a key word. So is a word that this history repeats, unless
  it is among the commonest words or in the project's own prompts, which any chat shares. A summary has some key words,
  and they are a good part of its text: generic prose has few, even with two file names in it.
- Most words and names of a summary occur in the history: text on another topic has many that do not.
- Some of its word pairs occur in the history.

A translation shares only names, numbers and loanwords, so only the first rule applies to it, with a smaller part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise

import msgspec

from codecompanion import prompts
from codecompanion.formats.regex import regex

READ_CHARS = 240_000
"""Maximum characters of a history to read, which takes 40 ms. In a longer history, long strings are cut
(`cut_evenly`)."""
_TEXT_CHARS = 40_000
_KEY_WORDS = 4
_SHARE = 0.28
_KEY_WORDS_OF_TERSE, _SHARE_OF_TERSE = 2, 0.6
_SHARE_OF_TRANSLATION = 0.15
_KNOWN = 0.55
_PAIRS = 0.07
_SEGMENT_WORDS = 5000
"""Length in words of a stretch of the history. A long history has several subjects, so a word counts as repeated if one
stretch repeats it.
"""
_REPEATED = 1 / 1000
_NOTHING, _TINY, _SHARED_WITH_TINY = 10, 16, 0.25
"""Numbers of distinct words: a history with fewer than the first needs no shared words in short sections, in one with
fewer than the second any shared word counts. The last is the share of a summary that must then be shared.
"""
_SAME_LANGUAGE, _LANGUAGE_WORDS = 0.6, 8
_REMARK_CHARS, _REMARK_WORDS = 80, 2
_SHORT = 4
_PLACE = 6

_PIECE = regex(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_RUN = regex(r"[\w./:@+#-]+")
_NAME = regex(r"[a-z][A-Z]|[A-Za-z]_\w|\d[A-Za-z]|[A-Za-z]\d|\d{4}|\d\.\d|\w[/.]\w|__")
_EDGES = "./:@+#-"
_NO_NAMES = frozenset({"and/or", "e.g", "i.e", "either/or", "he/she", "yes/no", "true/false"})
_SIGNS = "\u2e80"
"""The first character of scripts without spaces, to which all later characters belong."""

ELSEWHERE = "the summary has nothing to do with the conversation"
ANYWHERE = "the summary would fit any conversation: it says almost nothing about this one"


class History:
    """The words of a history, their repetitions and pairs, and its text for looking up names."""

    def __init__(self, texts: Sequence[str]) -> None:
        text = "\n".join(cut_evenly(texts, READ_CHARS))
        words = list(_words(text))
        raw = [word for word in words if len(word) > 2 or _is_sign(word)]
        stems = {word: _stem(word) for word in set(raw)}
        in_order = [stems[word] for word in raw]
        self.text = text.casefold()
        self.written = frozenset(words)
        self.words = frozenset(stems.values())
        self.repeated = frozenset(_repeated(in_order))
        self.pairs = frozenset(pairwise(in_order))
        own = sum(_is_sign(word) or _is_long(word) for word in self.words - _generic_words())
        self.is_tiny, self.says_nothing = own < _TINY, own < _NOTHING


def why_not_about(texts: Sequence[str], history: History) -> str:
    """Return the reason why the texts of an answer are not a summary of this history, or "" if they are."""
    telling = [text for text in texts if not _is_remark(text, history)] or texts
    said = _read("\n".join(telling)[:_TEXT_CHARS])
    known_names = {name for name in said.names if name in history.text}
    known = said.words & history.words
    keys = len(known_names) + len(known & history.repeated)
    share = keys / max(1, said.size)
    if history.is_tiny:
        shared = len(known_names) + len(said.content & history.words)
        says_little = history.says_nothing and len(texts) > 1 and said.size < _TINY
        enough = says_little or shared >= _SHARED_WITH_TINY * said.size or share >= _SHARE_OF_TRANSLATION
        return "" if enough else ELSEWHERE
    if keys < (_KEY_WORDS_OF_TERSE if share >= _SHARE_OF_TERSE else _KEY_WORDS):
        return ELSEWHERE if 2 * len(said.words - known) > len(said.content) else ANYWHERE
    if said.is_foreign_to(history):
        return "" if share >= _SHARE_OF_TRANSLATION else ELSEWHERE
    if len(known_names) + len(known) < _KNOWN * (len(said.names) + len(said.words)):
        return ELSEWHERE
    if share < _SHARE or len(said.pairs & history.pairs) < _PAIRS * len(said.pairs):
        return ANYWHERE
    return ""


def cut_evenly(texts: Iterable[str], room: int) -> list[str]:
    """Return the strings in at most `room` characters: short ones whole, longer ones reduced to head and tail."""
    whole = list(texts)
    limit, left = room, room
    for rest, length in zip(range(len(whole), 0, -1), sorted(map(len, whole)), strict=True):
        limit = left // rest
        if length > limit:
            break
        left -= length
    else:
        return whole
    return [text if len(text) <= limit else f"{text[: limit // 2]}\n{text[len(text) - limit // 2 :]}" for text in whole]


class _Words(msgspec.Struct, frozen=True):
    """The words of a string: names, `content` words, specific words, pairs with a specific word, and short words."""

    names: frozenset[str]
    content: frozenset[str]
    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    short: tuple[str, ...]

    @property
    def size(self) -> float:
        """Return the amount of content; a word in a script without spaces has two characters."""
        return len(self.names) + sum(0.5 if _is_sign(word) else 1 for word in self.content)

    def is_foreign_to(self, history: History) -> bool:
        """Return whether the text is in another language: the history contains few of its short words."""
        common = sum(word in history.written for word in self.short)
        return len(self.short) >= _LANGUAGE_WORDS and common < _SAME_LANGUAGE * len(self.short)


def _is_remark(text: str, history: History) -> bool:
    """Return whether a line only reports an empty section, such as "There are no pending tasks"."""
    if len(text) > _REMARK_CHARS:
        return False
    said = _read(text)
    return not said.names and len(said.content) <= _REMARK_WORDS and not said.words & history.repeated


def _read(text: str) -> _Words:
    names, rest = set[str](), list[str]()
    done = 0
    for run in _RUN.finditer(text):
        name = run.group().strip(_EDGES)
        if len(name) > 2 and _NAME.search(name) and name.casefold() not in _NO_NAMES:
            names.add(name.casefold())
            rest.append(text[done : run.start()])
            done = run.end()
    words = list(_words("\n".join([*rest, text[done:]])))
    generic = _generic_words()
    content = {_stem(word) for word in words if _is_sign(word) or (_is_long(word) and word not in _common_words())}
    stems = [_stem(word) for word in words if len(word) > 2 or _is_sign(word)]
    return _Words(
        names=frozenset(names),
        content=frozenset(content),
        words=frozenset(content - generic),
        pairs=frozenset(pair for pair in pairwise(stems) if not generic.issuperset(pair)),
        short=tuple(word for word in words if len(word) <= _SHORT and not word.isdecimal()),
    )


def _words(text: str) -> Iterator[str]:
    """Yield the words in order and in lower case, including parts of identifiers and pairs of characters."""
    for piece in _PIECE.findall(text):
        word = piece.casefold()
        if _is_sign(word):
            yield from (word[at : at + 2] for at in range(len(word) - 1)) if len(word) > 1 else (word,)
        else:
            yield word


def _is_long(word: str) -> bool:
    return len(word) >= _SHORT and not word.isdecimal()


def _is_sign(word: str) -> bool:
    return word[0] >= _SIGNS


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    """Return the stem of a word, shared by its forms such as `cancelled` and `cancels`."""
    if _is_sign(word):
        return word
    if len(word) > 3 and word.endswith("s"):
        word = word[:-1]
    elif len(word) > 5 and word.endswith("ing"):
        word = word[:-3]
    elif len(word) > 4 and word.endswith("ed"):
        word = word[:-2]
    return word[:_PLACE]


def _repeated(stems: list[str]) -> Iterator[str]:
    """Yield the words that a stretch of the history repeats; in a short history every word counts as repeated."""
    stretches = max(1, round(len(stems) / _SEGMENT_WORDS))
    size = max(1, -(-len(stems) // stretches))
    for start in range(0, len(stems), size):
        stretch = stems[start : start + size]
        yield from (word for word, count in Counter(stretch).items() if count >= _REPEATED * len(stretch))


@cache
def _common_words() -> frozenset[str]:
    return frozenset(str(prompts.load_table("refusals")["common"]).split())


@cache
def _generic_words() -> frozenset[str]:
    """Return the words that occur in any chat: the commonest words, and those of the project's own prompts."""
    return frozenset(_stem(word) for word in (*_common_words(), *_words(prompts.load_all())))
