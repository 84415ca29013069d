"""Messages removed from a chat's view are found and listed; only listed ones are prepared for display (R-516)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codecompanion.model.history import ChatCreated, MessageAdded, ToolRan, ViewChanged
from codecompanion.model.messages import Message, ToolCall
from codecompanion.model.view import project
from codecompanion.session.chat import removed_messages
from codecompanion.session.chat.removed_messages import Removed
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.store.opening import open_store
from codecompanion.store.store import Store
from tests.leftovers import closed_at_end

CHAT = "ab" * 12
FIELDS = {"cycle": 1, "turn_id": "t1"}
CALL = ToolCall("c1", "read_file", '{"path": "parser.py"}')
SAID = [
    Message(role="user", content="please read the parser", id="u1", **FIELDS),
    Message(role="assistant", content="", tool_calls=(CALL,), id="a1", **FIELDS),
    Message(role="tool", content="class Lexer reads tokens", tool_call_id="c1", id="r1", **FIELDS),
    Message(role="assistant", content="the lexer reads tokens", id="a2", **FIELDS),
    *(Message(role="user", content=f"filler number {number}", id=f"f{number}", **FIELDS) for number in range(30)),
    Message(role="user", content="tokens that are still in the view", id="last", **FIELDS),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = closed_at_end(open_store(tmp_path))
    ran = ToolRan(
        call_id="c1", message_id="r1", name="read_file", title="read parser.py", summary="", status="ok", duration_ms=1
    )
    cleared = ViewChanged(change_id="v1", kind="cleared", removed=tuple(one.id for one in SAID[:-1]))
    payloads = [ChatCreated(adapter="a", model="m", policy="p", cwd=""), *(MessageAdded(message=one) for one in SAID)]
    store.append(CHAT, [*payloads, ran, cleared]).result()
    yield store
    store.close()


def removed(store: Store, root: Path) -> Removed:
    return Removed(store, ChatLog(store, CHAT, project(store.load_events(CHAT))), lambda: root)


def test_removed_messages_are_found_by_their_words_with_their_titles(store: Store, tmp_path: Path) -> None:
    found = removed(store, tmp_path).find("lexer tokens")
    assert {one.id: one.title for one in found} == {"r1": "read parser.py", "a2": "reply: “the lexer reads tokens”"}
    assert {one.how for one in found} == {"removed by /clear"}


def test_titles_are_made_for_listed_messages_only(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, title = list[str](), removed_messages._title

    def noted(message: Message) -> str:
        made.append(message.id)
        return title(message)

    monkeypatch.setattr(removed_messages, "_title", noted)
    removed(store, tmp_path).find("lexer tokens")
    assert set(made) == {"a2"}
