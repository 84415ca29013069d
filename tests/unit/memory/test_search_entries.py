"""Search of the memory by the words of a query."""

from __future__ import annotations

import time

import pytest

from codecompanion.memory.entries import Entry
from codecompanion.memory.search_entries import MAX_LINES, search


def entry(title: str, text: str = "", time: float = 1.0) -> Entry:
    return Entry(origin="model", scope="project", title=title, text=text, time=time, path=title)


HARBOUR = (
    entry("Style", "Tests are sentences.\nUse tabs in Lua."),
    entry("Database", "We migrated the tables to SQLite.\nNo ORM.", 2.0),
    entry("Tests", "Run them with pytest -n 2.", 3.0),
    entry("数据库", "迁移到 SQLite 已完成"),
)


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("How do we run the tests?", ["Tests", "Style"]),
        ("migrating tables", ["Database"]),
        ("SQLITE", ["Database", "数据库"]),
        ("数据", ["数据库"]),
        ("ables", []),
        ("nothing_here", []),
        ("", []),
        ("?!", []),
        ("(.*", []),
    ],
)
def test_entries_with_the_words_are_found(query: str, titles: list[str]) -> None:
    assert [hit.entry.title for hit in search(HARBOUR, query)] == titles


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    many = [entry(f"n{n}", "the parser and the lexer", float(n)) for n in range(30)]
    assert search([*many, entry("rare", "the quay")], "parser quay", 1)[0].entry.title == "rare"


def test_a_hit_shows_the_lines_with_the_words() -> None:
    text = "\n".join([*(f"line {n}" for n in range(50)), "the quay is here", *("quay" for _ in range(9))])
    (hit,) = search([entry("a", text)], "quay here")
    assert hit.lines[0] == "the quay is here"
    assert len(hit.lines) == MAX_LINES


def test_fifty_thousand_entries_are_searched_in_seconds() -> None:
    entries = [entry(f"n{n}", f"word{n} " + "the quay of the harbour " * 4, float(n)) for n in range(50_000)]
    begun = time.process_time()
    assert search(entries, "word31415 quay")[0].entry.title == "n31415"
    assert time.process_time() - begun < 10
