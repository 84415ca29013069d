"""Reads the index's evidence for a question within milliseconds (R-207).

Word counts are cached, so that the common words of a large project are counted only once.
"""

from __future__ import annotations

import sqlite3

from codecompanion.formats.regex import regex
from codecompanion.retrieval.index_evidence import Evidence, read_for_evidence, telling_words
from codecompanion.retrieval.ranking.question import Question
from codecompanion.session.code.searcher import CodeSearcher
from codecompanion.store.code_index.search import find_definitions
from codecompanion.store.code_index.word_search import count_pairs

_SEVERAL_WORDS = regex(r"[A-Za-z0-9]_[A-Za-z0-9]|[a-z0-9][A-Z]")


def find_evidence(searcher: CodeSearcher, text: str) -> Evidence | None:
    """Return the index's evidence for a question, or None if no index covers the project. Blocks."""
    with searcher.opened([]) as connection:
        known = len(searcher.words.paths)
        if connection is None or not known or len(searcher.not_indexed) > known:
            return None
        return _read(searcher, connection, text)


def _read(searcher: CodeSearcher, connection: sqlite3.Connection, text: str) -> Evidence:
    question, counts = read_for_evidence(text), searcher.words.word_counts
    words = telling_words(question)
    return Evidence(
        pieces=counts.chunks(connection),
        with_word={word: counts.chunks_with(connection, word) for word in words},
        with_pair=count_pairs(connection, counts, question.pairs),
        with_name={word: counts.chunks_named(connection, word) for word in words},
        has_file=_has_file(searcher, question),
        has_definition=_has_definition(connection, question),
        name=searcher.project.root.name,
    )


def _has_definition(connection: sqlite3.Connection, question: Question) -> bool:
    """Return whether the project defines a compound name that is written as code in the question."""
    written = [name for name in question.code_names if _SEVERAL_WORDS.search(name)]
    return bool(written) and bool(find_definitions(connection, written, 1))


def _has_file(searcher: CodeSearcher, question: Question) -> bool:
    """Return whether the project has a file or folder that is written as a path in the question."""
    written = tuple(path for path in question.paths if "." in path or "/" in path)
    if not written:
        return False
    known = (f"/{path.lower()}" for path in searcher.words.paths.values())
    return any(path.endswith(f"/{one}") or f"/{one}/" in path for path in known for one in written)
