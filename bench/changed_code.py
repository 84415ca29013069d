"""The functions that a commit changed, the share of them that is shown, and plain BM25 as a baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from bench.commit_questions import CommitQuestion
from codecompanion.model.found_code import FoundCode
from codecompanion.retrieval.ranking.question import any_word_query
from codecompanion.session.gather.project_code import parse_text
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.store.code_index.search import find_chunks

PLACES = 300
Function = tuple[str, int, int]
"""Path, first and last line."""
Read = Callable[[str], str | None]


class Shown(Protocol):
    """Lines of a file."""

    @property
    def path(self) -> str: ...  # noqa: D102  as the class says

    @property
    def start(self) -> int: ...  # noqa: D102

    @property
    def end(self) -> int: ...  # noqa: D102


def changed_functions(read: Read, question: CommitQuestion) -> list[Function]:
    """Return the changed definitions, and the changed lines that are in none.

    Lines without a letter or digit are left out: code inserted between two definitions changes no existing code.
    """
    found = dict[Function, None]()
    for path, ranges in question.changed.items():
        text = read(path)
        if text is None:
            continue
        lines = text.split("\n")
        definitions = [one for one in parse_text(path, text).definitions if one.kind != "variable"]
        for start, end in ranges:
            around = [one for one in definitions if one.start <= start <= one.end]
            best = min(around, key=lambda one: one.end - one.start, default=None)
            if best is not None:
                found[path, best.start, best.end] = None
            elif any(map(str.isalnum, "".join(lines[start - 1 : end]))):
                found[path, start, end] = None
    return list(found)


def share_shown(shown: Iterable[Shown], functions: Sequence[Function]) -> float:
    """Return the share of the functions of which at least half is shown."""
    lines = defaultdict[str, set[int]](set)
    for one in shown:
        lines[one.path].update(range(one.start, one.end + 1))
    there = (len(lines[path] & set(range(start, end + 1))) * 2 >= end - start + 1 for path, start, end in functions)
    return sum(there) / len(functions) if functions else 0.0


def plain_bm25(reader: IndexReader, read: Read, words: Iterable[str]) -> list[FoundCode]:
    """Return the chunks of an index that have any of the words, by SQLite's `bm25()`, best first."""
    query = any_word_query(dict.fromkeys(words))
    with reader.reading() as connection:
        rows = find_chunks(connection, query, (1.0, 1.0, 1.0), PLACES) if query else []
        paths = dict(connection.execute("SELECT id, path FROM files"))
    found = list[FoundCode]()
    for row in rows:
        path = paths[row.file]
        text = "\n".join((read(path) or "").split("\n")[row.start - 1 : row.end])
        found.append(FoundCode(path, row.start, row.end, 0, "fts", text=text))
    return found


def within(found: Iterable[FoundCode], budget: int) -> list[FoundCode]:
    """Return the places that fit into a budget of tokens, best first; places that do not fit are skipped."""
    kept = list[FoundCode]()
    for one in found:
        tokens = -(-len(one.text) // 4)
        if tokens <= budget:
            budget -= tokens
            kept.append(one)
    return kept
