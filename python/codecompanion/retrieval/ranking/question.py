"""Parses a question: its words, names that look like code, and whether it is about documents or tests.

Words that occur in every question (`question_words.toml`) are left out, unless there are no others, or the project has
a file or definition of that name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

import msgspec

from codecompanion.formats.code_words import index_words, split_words
from codecompanion.formats.regex import regex
from codecompanion.retrieval.ranking.stems import stem
from codecompanion.retrieval.ranking.tables import question_words
from codecompanion.retrieval.search.full_text_query import MAX_QUERY_CHARS, MAX_WORDS

_WORD = regex(r"\w+")
_LOOKS_LIKE_CODE = regex(r"_|[a-z0-9][A-Z]|^[A-Z]{2,}$")
_PATH_CHARACTERS = regex(r"[\w./-]+")
_FILE_ENDING = regex(r"(?<=\w)\.\w{1,5}\b")
_FOLDERS = regex(r"(?<![\w.-])[\w.-]++(?:/[\w.-]++)+")
_CODE_SPAN = regex(r"`([^`]+)`|\b(\w++)\(|\.(\w+)|\b(\w++)(?=\.\w)")


class Question(msgspec.Struct, frozen=True):
    """A parsed question: `words` as the index splits them, their `stems`, and `names` as written.

    `pairs`: adjacent words; the parts of a name are rarely adjacent by chance. `code_names`: the `names` written as
    code (`snake_case`, `camelCase`, in backticks, called, dotted). `paths`: text that looks like a file name or a path,
    in lower case.
    """

    text: str
    words: tuple[str, ...]
    stems: tuple[str, ...]
    pairs: tuple[str, ...]
    names: tuple[str, ...]
    code_names: frozenset[str]
    paths: tuple[str, ...]
    is_about_documents: bool
    is_about_tests: bool = False


def asking_words(text: str) -> list[str]:
    """Return the words of a question that do not help locate the answer, unless they are names."""
    words = (word.lower() for word in _WORD.findall(text[:MAX_QUERY_CHARS]))
    return [word for word in dict.fromkeys(words) if word in question_words()["asking"]]


def read_question(text: str, names_here: Collection[str] = ()) -> Question:
    """Parse a question; only the first 4096 characters and 32 words are used, as in all searches (R-230).

    `names_here`: the `asking_words` that are names in the project.
    """
    text = text[:MAX_QUERY_CHARS]
    dropped = question_words()
    asking = dropped["asking"].difference(names_here)
    in_order = index_words(text)
    every = tuple(dict.fromkeys(in_order))
    names = tuple(dict.fromkeys(_WORD.findall(text)))
    marked = {name for groups in _CODE_SPAN.findall(text) for group in groups for name in _WORD.findall(group)}
    code_names = frozenset(name for name in names if name in marked or _LOOKS_LIKE_CODE.search(name))
    of_code = {part for name in code_names for part in index_words(name)}
    words = tuple(word for word in every if word in of_code or word not in asking)[:MAX_WORDS]
    words = words or every[:MAX_WORDS]
    stem_parts = set(split_words(text))
    return Question(
        text,
        words,
        tuple(dict.fromkeys(map(stem, words))),
        tuple(dict.fromkeys(f"{one} {other}" for one, other in pairwise(in_order) if {one, other} <= set(words))),
        tuple(name for name in names if len(name) > 2 and (name in code_names or name.lower() not in asking)),
        code_names,
        tuple(dict.fromkeys(found.lower() for found in _paths(text))),
        not dropped["documents"].isdisjoint(map(str.lower, names)),
        not dropped["tests"].isdisjoint(stem_parts),
    )


def _paths(text: str) -> Iterator[str]:
    """Yield the parts of a text that look like a path, or like a file name with an extension, in linear time."""
    for run in _PATH_CHARACTERS.findall(text):
        end = 0
        for ending in _FILE_ENDING.finditer(run):
            end = ending.end()
        if end:
            yield run[:end]
        yield from _FOLDERS.findall(run[end:])


def spellings(name: str) -> tuple[str, ...]:
    """Return how code may spell a name: unchanged, in lower case, `snake_case`, `camelCase`, `PascalCase`."""
    parts = split_words(name)
    capital = [part.capitalize() for part in parts]
    camel = "".join([*parts[:1], *capital[1:]])
    return tuple(dict.fromkeys((name, name.lower(), "_".join(parts), camel, "".join(capital))))


def any_word_query(words: Iterable[str]) -> str:
    """Return the FTS query for chunks with any of the words or phrases; "" for none."""
    return " OR ".join(f'"{word}"' for word in words)
