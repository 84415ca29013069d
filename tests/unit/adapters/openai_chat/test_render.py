"""Rendered request bodies, and the pieces cached between requests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.openai_chat.decode import MISTRAL_THINKING
from codecompanion.adapters.openai_chat.refusals import Learned
from codecompanion.adapters.openai_chat.render import (
    NO_OUTPUT,
    ChatRenderer,
    RenderOptions,
    encode,
)
from codecompanion.errors import RequestRejected
from codecompanion.model.messages import ImagePart, Message, ReasoningPart, TextPart, ToolCall


def renderer(options: RenderOptions | None = None, **settings: Any) -> ChatRenderer:
    entry = AdapterSettings(**{"name": "t", "kind": "openai_compatible", **settings})
    return ChatRenderer(entry, options or RenderOptions(), lambda _: b"png")


def sent(options: RenderOptions | None, *messages: Message) -> list[dict[str, Any]]:
    body = b"".join(renderer(options).render(ChatRequest(messages=messages, model="m")))
    rendered: list[dict[str, Any]] = msgspec.json.decode(body)["messages"]
    return rendered


def user(number: int, text: str = "hi") -> Message:
    return Message(id=f"u{number}", role="user", content=text)


def test_only_the_fields_of_the_wire_are_sent() -> None:
    """Internal keys would be refused, and are private."""
    message = Message(
        *("a", "assistant", "text"), cycle=3, tag="tool", path="x", pinned=True, edited=True, ts=1.0, tokens=5, cut=True
    )
    assert sent(None, message) == [{"role": "assistant", "content": "text"}]


def test_a_reply_with_only_calls_has_null_content() -> None:
    """Some endpoints refuse an empty string, some a missing key; all tested ones accept null."""
    message = Message(id="a", role="assistant", tool_calls=(ToolCall("c", "read", '{"p": 1}'),))
    result = Message(id="r", role="tool", content="", tool_call_id="c")
    assistant, tool = sent(None, message, result)
    assert assistant["content"] is None
    assert assistant["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"p": 1}'}
    assert tool["content"] == NO_OUTPUT


def test_broken_arguments_do_not_break_the_chat() -> None:
    """Several endpoints parse them; the model still sees what it wrote."""
    message = Message(id="a", role="assistant", tool_calls=(ToolCall("c", "read", '{"p": '),))
    assistant, _ = sent(None, message, Message(id="r", role="tool", content="bad JSON", tool_call_id="c"))
    arguments = assistant["tool_calls"][0]["function"]["arguments"]
    assert msgspec.json.decode(arguments) == {"invalid_json": '{"p": '}


def test_short_call_ids_stay_paired_and_are_stable() -> None:
    """Mistral accepts only nine letters and digits."""
    message = Message(
        id="a", role="assistant", tool_calls=(ToolCall("call_0123456789", "read"), ToolCall("abcdefghi", "x"))
    )
    given_ids = [call.id for call in message.tool_calls]
    results = [Message(id=i, role="tool", content="o", tool_call_id=i) for i in given_ids]
    assistant, *tools = sent(RenderOptions(short_call_ids=True), message, *results)
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert [tool["tool_call_id"] for tool in tools] == ids
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)
    assert ids[1] == "abcdefghi"


def test_reasoning_is_sent_back_in_its_original_shape() -> None:
    """Mistral's thinking is a content part, which no other endpoint accepts."""
    content = (ReasoningPart("hm", MISTRAL_THINKING), TextPart("Yes"))
    message = Message(id="a", role="assistant", content=content)
    assert sent(None, message) == [{"role": "assistant", "content": "Yes"}]
    assert sent(RenderOptions(send_reasoning=True, reasoning_field=MISTRAL_THINKING), message)[0]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Yes"},
    ]
    elsewhere = {"role": "assistant", "content": "Yes", "reasoning_content": "hm"}
    assert sent(RenderOptions(send_reasoning=True), message) == [elsewhere]
    plain = Message(
        id="a", role="assistant", content=(ReasoningPart("a", "reasoning"), ReasoningPart("b", "reasoning"))
    )
    calls = msgspec.structs.replace(plain, tool_calls=(ToolCall("c", "read"),))
    result = Message(id="r", role="tool", content="o", tool_call_id="c")
    assert sent(RenderOptions(send_reasoning=True), calls, result)[0]["reasoning"] == "ab"


def test_images_can_be_left_out_for_models_without_vision() -> None:
    """A note replaces the image, so that the text around it still makes sense."""
    message = Message(id="u", role="user", content=(TextPart("See"), ImagePart(sha256="ab", path="a.png")))
    (shown,) = sent(RenderOptions(image_input=False), message)
    assert shown["content"][1]["type"] == "text"
    assert "a.png" in shown["content"][1]["text"]


def test_the_system_role_can_be_developer() -> None:
    """Some endpoints renamed it."""
    assert (
        sent(RenderOptions(system_role="developer"), Message(id="s", role="system", content="x"))[0]["role"]
        == "developer"
    )


def test_a_configured_parameter_overrides_the_default() -> None:
    """`stream_options` and `stream` can be set by the user; the request's limit overrides everything."""
    made = renderer(parameters={"stream_options": {"a": 1}, "max_tokens": 7}, max_tokens_field="max_tokens")
    body = msgspec.json.decode(b"".join(made.render(ChatRequest(messages=[user(1)], model="m", max_output_tokens=9))))
    assert (body["stream_options"], body["max_tokens"]) == ({"a": 1}, 9)
    body = msgspec.json.decode(
        b"".join(renderer(parameters={"stream": False}).render(ChatRequest(messages=[user(1)], model="m")))
    )
    assert body["stream"] is False
    assert "stream_options" not in body


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83c\udf89"])
def test_lone_surrogates_become_replacement_characters(text: str) -> None:
    """Tool output is decoded bytes; JSON must be valid UTF-8."""
    decoded = msgspec.json.decode(encode({"content": text, "list": [text], text: 1}))
    assert "\ufffd" in decoded["content"] or decoded["content"] == "🎉"


def test_the_cached_pieces_are_limited() -> None:
    """The cached pieces of a few chats are kept; the oldest are dropped first."""
    made = renderer()
    for number in range(10):
        made.render(ChatRequest(messages=[user(number)], model="m", chat_id=str(number)))
    assert list(made._kept) == ["6", "7", "8", "9"]


def test_a_summary_request_does_not_evict_the_chat() -> None:
    """It is sent only once."""
    made = renderer()
    made.render(ChatRequest(messages=[user(1)], model="m", chat_id="c"))
    made.render(ChatRequest(messages=[user(2)], model="m", chat_id="c", purpose="summary"))
    assert made._kept["c"].given == (user(1),)


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["append", "cut", "edit", "same", "insert", "tool"]), st.integers(0, 50)), max_size=25
)


@given(OPERATIONS)
def test_the_cache_has_no_visible_effect(operations: list[tuple[str, int]]) -> None:
    """Property: after any sequence of edits the body equals that of a new renderer."""
    made = renderer()
    messages = [user(0)]
    for number, (operation, place) in enumerate(operations, 1):
        index = place % len(messages)
        match operation:
            case "append":
                messages = [*messages, user(number, f"text {number}")]
            case "cut" if len(messages) > 1:
                messages = [*messages[:index], *messages[index + 1 :]]
            case "edit":
                messages = [
                    *messages[:index],
                    msgspec.structs.replace(messages[index], content=f"e{number}"),
                    *messages[index + 1 :],
                ]
            case "insert":
                messages = [*messages[:index], user(number, "inserted"), *messages[index:]]
            case "tool":
                calls = Message(id=f"a{number}", role="assistant", tool_calls=(ToolCall(f"c{place}", "read"),))
                result = Message(id=f"r{number}", role="tool", content="o", tool_call_id=f"c{place}")
                messages = [*messages, calls, *([result] if place % 3 else [])]
            case _:
                pass
        request = ChatRequest(messages=tuple(messages), model="m", chat_id="c")
        assert made.render(request) == renderer().render(request)


def test_an_empty_reply_is_left_out_without_a_repair(caplog: pytest.LogCaptureFixture) -> None:
    """Replies that are empty or contain only reasoning are omitted silently.

    As repairs, they would cost a new rendering each time.
    """
    call = Message(id="a", role="assistant", tool_calls=(ToolCall("c", "read"),))
    result = Message(id="r", role="tool", content="o", tool_call_id="c")
    silent = [
        Message(id="e", role="assistant", content=""),
        Message(id="f", role="assistant", content=(ReasoningPart("hm"), TextPart(""))),
    ]
    words = Message(id="u", role="user", content="hi")
    history = [words, call, result, *silent, words]
    with caplog.at_level("WARNING"):
        assert [message["role"] for message in sent(None, *history)] == ["user", "assistant", "tool", "user"]
    assert caplog.text == ""
    learned = Learned(reply_to_tools=True)
    cached = renderer()
    for length in range(3, len(history) + 1):
        wanted = ChatRequest(messages=history[:length], model="m", chat_id="c")
        body = b"".join(cached.render(wanted, learned))
        assert body == b"".join(renderer().render(wanted, learned))
    assert [m["role"] for m in msgspec.json.decode(body)["messages"]][-2:] == ["assistant", "user"]


def test_a_message_that_would_be_refused_is_named_and_nothing_is_sent() -> None:
    """Each message is validated by the endpoint's rules once, when it is rendered."""
    message = Message(id="u1", role="user", content=(TextPart("Look at this"), ImagePart("image/png", url="ftp://x/a")))
    with pytest.raises(RequestRejected) as caught:
        sent(None, message)
    expected = "the user message “Look at this” has an image that is neither a URL nor base64."
    assert str(caught.value).endswith(f": not sent; {expected}")
