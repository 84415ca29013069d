"""Full-text search over everything said (design, section Store)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.history import MessageAdded
from codecompanion.messages import ImagePart, Message, TextPart
from codecompanion.store import Store, open_memory_store

from .conftest import CREATED, Desk, said


def test_all_words_must_occur_and_the_last_may_be_a_beginning(store: Store) -> None:
    """Best hit first, with title, place and a marked snippet; the text after a restart is found as well."""
    store.append("c", [CREATED, said("The parser fails on empty_tables in Lua", number=1)]).result()
    store.append("c", [said("The parser works", "assistant", number=2), said("tables are fine", number=3)]).result()
    (hit,) = store.search("parser tab")
    assert (hit.chat_id, hit.seq, hit.message_id, hit.role) == ("c", 2, "m1", "user")
    assert "«parser»" in hit.snippet
    assert "«tables»" in hit.snippet
    assert {one.message_id for one in store.search("parser")} == {"m1", "m2"}
    assert store.search("parser nothing") == []
    assert store.search("parser", chat_id="other") == []
    assert len(store.search("parser", limit=1)) == 1


def test_text_parts_are_found_and_system_prompt_and_rules_are_not(store: Store) -> None:
    """System prompt and rules stand in every chat: finding them finds nothing."""
    parts = (TextPart("needle in a part"), ImagePart(path="x.png"))
    store.append(
        "c",
        [
            MessageAdded(message=Message(id="p", role="user", content=parts)),
            MessageAdded(message=Message(id="s", role="system", content="needle")),
            MessageAdded(message=Message(id="r", role="user", content="needle", tag="rules")),
        ],
    ).result()
    assert [hit.message_id for hit in store.search("needle")] == ["p"]


@pytest.mark.parametrize("query", ["", " ", '"', "AND", "NEAR(", "a* OR", "text:x", "-", "*", "\0", "\udc80", "中文"])
def test_no_query_is_a_syntax_error(store: Store, query: str) -> None:
    """What the user types is words, never FTS5 syntax."""
    store.append("c", [said("and near or text 中文 x")]).result()
    assert isinstance(store.search(query), list)


@given(st.text(st.characters(codec=None), max_size=20))
def test_any_query_on_any_text_gives_an_answer(text: str) -> None:
    """A text is found by itself as far as it has words."""
    store = open_memory_store()
    try:
        store.append("c", [said(text)]).result()
        assert len(store.search(text)) <= 1
    finally:
        store.close()


def test_a_failed_append_is_not_found(desk: Desk) -> None:
    """Index and log change in one transaction."""
    store = desk.open()
    store.append("c", [said("ghost"), object()]).exception()  # type: ignore[list-item]
    store.append("c", [said("real")]).result()
    assert store.search("ghost") == []
    assert [hit.seq for hit in store.search("real")] == [1]
