"""The full-text query of a question and the score of SQLite's rank (R-230, R-231)."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.retrieval.search.full_text_query import (
    index_query,
    query_words,
    text_score,
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("", ""),
        ("?! -- ()", ""),
        ("where is the parser", '"parser"'),
        ("count OR total NOT size*", '"count" AND "total" AND "size"'),
        ('say "hello" NEAR(x, 2)', '"say" AND "hello" AND "near"'),
        ("getUser_name über größe", '"get user name" AND "über" AND "größe"'),
        ("path:src -minus ^first", '"path" AND "src" AND "minus" AND "first"'),
    ],
)
def test_every_word_is_quoted_and_joined_by_and(question: str, expected: str) -> None:
    """R-230."""
    assert index_query(question) == expected


def test_words_and_characters_are_limited() -> None:
    """R-230: the limits are the first 4096 characters, 32 words, and 128 characters per word."""
    assert len(query_words(" ".join(f"w{i}" for i in range(100)))) == 32
    assert query_words("x" * 500) == ("x" * 128,)
    assert query_words(" " * 4096 + "late") == ()


def test_a_query_of_the_index_uses_the_phrase_of_a_name() -> None:
    """R-231: the index has split words, without the most common ones."""
    assert index_query("fix parseURLPath_2 user_name __") == '"fix" AND "parse url path" AND "user name"'
    assert index_query("") == ""


@pytest.mark.parametrize(("bm25", "score"), [(0.0, 0.0), (-1.0, 0.5), (-3.0, 0.75), (2.0, 0.0)])
def test_a_rank_is_converted_to_a_score(bm25: float, score: float) -> None:
    """R-231: raw = -bm25, score = raw / (1 + raw)."""
    assert text_score(bm25) == pytest.approx(score)


@given(st.text(max_size=300))
def test_no_question_is_a_syntax_error(question: str) -> None:
    """R-230: quoting neutralises every operator."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61')")
        if query := index_query(question):
            connection.execute("SELECT rowid FROM t WHERE t MATCH ?", (query,)).fetchall()
    finally:
        connection.close()
