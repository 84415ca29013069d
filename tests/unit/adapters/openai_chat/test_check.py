"""Histories refused before they are sent, and their repair."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.openai_chat.check import check_request, is_silent, repair_request
from codecompanion.adapters.openai_chat.render import ChatRenderer, RenderOptions
from codecompanion.model.messages import ImagePart, Message, ReasoningPart, TextPart, ToolCall
from codecompanion.placeholders import INTERRUPTED
from tests.providers.chat.rules import refusal_of


def user(text: str = "hi") -> Message:
    return Message(id="u", role="user", content=text)


def call(*ids: str, text: str = "") -> Message:
    return Message(id="a", role="assistant", content=text, tool_calls=tuple(ToolCall(i, "read") for i in ids))


def result(call_id: str, text: str = "out") -> Message:
    return Message(id=f"r-{call_id}", role="tool", content=text, tool_call_id=call_id)


def test_a_valid_chat_has_no_problems() -> None:
    """Parallel calls, results in any order and ids reused in a later turn are valid."""
    chat = [user(), call("a", "b"), result("b"), result("a"), call("a"), result("a"), user()]
    assert check_request(chat) == []
    assert repair_request(chat) == [chat[0], chat[1], chat[3], chat[2], *chat[4:]]


def test_each_violation_is_named() -> None:
    """Each problem is reported in one sentence that gives its position."""
    chats = {
        "does not follow its call": [user(), result("a")],
        "comes before the result": [call("a"), user(), result("a")],
        "the last call has no result": [user(), call("a")],
        "ids are empty or repeated": [call("a", "a"), result("a")],
        "has no content": [user("")],
        "cannot call tools": [msgspec.structs.replace(call("a"), role="user"), result("a")],
    }
    for words, chat in chats.items():
        assert any(words in problem for problem in check_request(chat)), words


def test_a_result_is_moved_after_its_call() -> None:
    """If a user message was queued while a tool ran, the result is moved before it."""
    chat = [user(), call("a", "b"), result("a"), user("more"), result("b")]
    assert repair_request(chat) == [chat[0], chat[1], chat[2], chat[4], chat[3]]


def test_a_gap_is_filled_and_an_orphan_left_out() -> None:
    """Lesson 28: a cancelled call must not poison the chat."""
    repaired = repair_request([result("x"), user(), call("a")])
    assert [message.role for message in repaired] == ["user", "assistant", "tool"]
    assert repaired[2].content == INTERRUPTED
    assert repaired[2].is_error


def test_repeated_ids_in_one_message_are_made_distinct() -> None:
    """Calls and results keep their order."""
    repaired = repair_request([call("a", "a", ""), result("a", "1"), result("a", "2"), result("", "3")])
    assert [c.id for c in repaired[0].tool_calls] == ["a", "a_2", "call"]
    assert [(m.tool_call_id, m.content) for m in repaired[1:]] == [("a", "1"), ("a_2", "2"), ("call", "3")]
    assert check_request(repaired) == []


def test_reasoning_alone_is_not_content() -> None:
    """A reply without text is dropped, which does not count as a repair; an empty user message is a problem."""
    only_thought = Message(id="a", role="assistant", content=(ReasoningPart("hm"),))
    assert is_silent(only_thought)
    assert check_request([only_thought]) == []
    assert check_request([Message(id="u", role="user", content="")]) != []
    assert repair_request([user(), only_thought]) == [user()]
    assert check_request([Message(id="u", role="user", content=(ImagePart(url="https://x.test/a.png"),))]) == []


TEXTS = st.sampled_from(["", "x", "ü\ud800", "a\nb"])
IDS = st.sampled_from(["a", "b", ""])
CONTENT = st.one_of(
    TEXTS,
    st.lists(
        st.one_of(
            st.builds(TextPart, TEXTS),
            st.builds(ReasoningPart, TEXTS),
            st.just(ImagePart(url="https://x.test/a.png")),
            st.just(ImagePart(sha256="00")),
        ),
        max_size=3,
    ).map(tuple),
)
CALLS = st.lists(
    st.builds(ToolCall, IDS, st.just("read"), st.sampled_from(["{}", "", "{broken", "[1]", '{"a": 1}'])), max_size=3
).map(tuple)
MESSAGES = st.lists(
    st.one_of(
        st.builds(Message, id=st.just("u"), role=st.sampled_from(["user", "system"]), content=CONTENT),
        st.builds(Message, id=st.just("a"), role=st.just("assistant"), content=CONTENT, tool_calls=CALLS),
        st.builds(Message, id=st.just("t"), role=st.just("tool"), content=CONTENT, tool_call_id=st.none() | IDS),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(MESSAGES)
def test_the_endpoint_accepts_the_request_for_any_chat(messages: list[Message]) -> None:
    """Property: the server's own rules accept every request.

    A second repair changes nothing, and the input is unchanged.
    """
    before = msgspec.json.encode([repr(message) for message in messages])
    repaired = repair_request(messages)
    assert check_request(repaired) == []
    assert repair_request(repaired) == repaired
    settings = AdapterSettings(name="t", kind="openai_compatible")
    renderer = ChatRenderer(settings, RenderOptions(), lambda _: b"\x89PNG")
    messages = [user("first"), *messages]
    for chat_id in ("c", "c", ""):
        body = msgspec.json.decode(
            b"".join(renderer.render(ChatRequest(messages=messages, model="m", chat_id=chat_id)))
        )
        assert refusal_of(body, models=(), window=0) is None
    assert msgspec.json.encode([repr(message) for message in messages[1:]]) == before
