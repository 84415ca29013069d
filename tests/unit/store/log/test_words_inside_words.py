"""Search terms of a message besides its words: names, letter pairs, calls (R-516)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.model.messages import Message, ToolCall
from codecompanion.store.log.words_inside_words import MAX_CALL_CHARS, inner_words, pairs_of, pieces_of


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("parseTable", ["parse", "table"]),
        ("HTTPServer", ["http", "server"]),
        ("readUTF8Text", ["read", "utf", "8", "text"]),
        ("word", []),
        ("README", []),
    ],
)
def test_a_name_is_split_into_its_words(name: str, pieces: list[str]) -> None:
    assert pieces_of(name) == pieces


def test_text_without_spaces_is_split_into_pairs() -> None:
    assert pairs_of("数据库") == ["数据", "据库"]
    assert pairs_of("数") == ["数"]
    assert inner_words(Message(id="m", role="user", content="the 数据库, twice 数据库")) == "数据 据库"


def test_plain_prose_needs_no_extra_terms() -> None:
    assert inner_words(Message(id="m", role="user", content="Plain prose, with GNU and a Name.")) == ""


def test_calls_and_paths_are_found_and_the_beginning_of_a_long_argument() -> None:
    """Otherwise a written file would be indexed twice."""
    call = ToolCall("c", "write_file", '{"path": "src/a.lua", "text": "' + "x" * MAX_CALL_CHARS + ' tail"}')
    asked = inner_words(Message(id="m", role="assistant", tool_calls=(call,))).split()
    assert {"write", "file", "src", "a", "lua"} <= set(asked)
    assert "tail" not in asked
    answered = inner_words(Message(id="t", role="tool", tool_call_id="c", content="done"), call).split()
    assert answered == asked
    assert inner_words(Message(id="f", role="user", tag="file", path="lua/x.lua", content="…")) == "lua x"


@given(st.text(max_size=60))
def test_any_text_yields_distinct_words(text: str) -> None:
    words = inner_words(Message(id="m", role="user", content=text)).split()
    assert len(words) == len(set(words))
