"""What the index of a project has of a question, read within milliseconds (R-207).

All that is read is counted first: common words of a large project are counted once, and cost nothing afterwards.
"""

from __future__ import annotations

import sqlite3

from codecompanion.retrieval.index_evidence import Evidence, names_asked, telling_words
from codecompanion.retrieval.ranking.question import Question, read_question
from codecompanion.session.code.searcher import CodeSearcher
from codecompanion.store.code_index import search
from codecompanion.store.code_index.word_search import count_pairs, find_any

MAX_POSTINGS = 20_000
"""The best place is looked for by words that stand in no more chunks than this together, the rare ones first."""
MAX_NAMES = 400


def find_evidence(searcher: CodeSearcher, text: str) -> Evidence | None:
    """Return what the index has of a question, None where there is none that knows the project. Blocks."""
    with searcher.opened([]) as connection:
        known = len(searcher.words.paths)
        if connection is None or not known or len(searcher.not_indexed) > known:
            return None
        return _read(searcher, connection, text)


def _read(searcher: CodeSearcher, connection: sqlite3.Connection, text: str) -> Evidence:
    question, counts = read_question(text), searcher.words.word_counts
    words = telling_words(question)
    with_word = {word: counts.chunks_with(connection, word) for word in words}
    asked = names_asked(question.text)[:MAX_NAMES]
    definitions = search.find_definitions(connection, asked) if asked else []
    paths = searcher.words.path_words
    return Evidence(
        pieces=counts.chunks(connection),
        with_word=with_word,
        with_pair=count_pairs(connection, counts, question.pairs),
        defined=frozenset(row.name for row in definitions),
        in_paths=frozenset(one for one in question.stems if paths.has(one)),
        best_bm25=_best(searcher, connection, question, with_word),
        has_file=_has_file(searcher, question),
        name=searcher.project.root.name,
    )


def _best(
    searcher: CodeSearcher, connection: sqlite3.Connection, question: Question, with_word: dict[str, int]
) -> float:
    kept, postings = list[str](), 0
    for word in sorted(with_word, key=lambda word: with_word[word]):
        postings += with_word[word]
        if postings > MAX_POSTINGS:
            break
        kept.append(word)
    pairs = [pair for pair in question.pairs if set(pair.split()) <= set(kept)]
    rows = find_any(connection, searcher.words.word_counts, kept, pairs, (1.0, 1.0, 1.0), 1)
    return -rows[0].bm25 if rows else 0.0


def _has_file(searcher: CodeSearcher, question: Question) -> bool:
    """Return whether a file or folder that the question writes as a path is in the project."""
    written = tuple(path for path in question.paths if "." in path or "/" in path)
    if not written:
        return False
    known = (f"/{path.lower()}" for path in searcher.words.paths.values())
    return any(path.endswith(f"/{one}") or f"/{one}/" in path for path in known for one in written)
