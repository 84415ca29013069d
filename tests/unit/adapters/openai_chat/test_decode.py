"""Replies decoded from bytes, without a socket."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from codecompanion.adapters.base import Finished, ReasoningDelta, StreamEvent, TextDelta, ToolCallStarted
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.openai_chat.decode import MISTRAL_THINKING, ChatDecoder
from codecompanion.errors import ContextOverflow, MalformedReply, StreamCut
from codecompanion.model.messages import ToolCall, Usage
from tests.providers.chat.answers import Call, reply


def new_decoder() -> ChatDecoder:
    numbers = iter(range(100))
    return ChatDecoder(Endpoint(name="test"), lambda: f"new_{next(numbers)}")


def data(*chunks: Any) -> bytes:
    return b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def run(body: bytes, *, cut: int = 0) -> tuple[list[StreamEvent], ChatDecoder]:
    decoder = new_decoder()
    events = [*decoder.feed(body[:cut]), *decoder.feed(body[cut:])]
    return ([*events, *decoder.finish()] if decoder.problem is None else events), decoder


def finished(body: bytes) -> Finished:
    events, decoder = run(body)
    assert decoder.problem is None, decoder.problem
    last = events[-1]
    assert isinstance(last, Finished)
    return last


def facts(events: list[StreamEvent]) -> tuple[str, str, list[str], Finished | None]:
    """Return the properties that must not depend on where the bytes were split."""
    return (
        "".join(event.text for event in events if isinstance(event, TextDelta)),
        "".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        [event.name for event in events if isinstance(event, ToolCallStarted)],
        events[-1] if isinstance(events[-1], Finished) else None,
    )


@pytest.mark.sweep
@pytest.mark.parametrize("crlf", [False, True])
def test_a_reply_split_at_any_byte_is_the_same_reply(crlf: bool) -> None:
    """A reply with text, reasoning, tool calls and usage is the same for any split, even byte by byte."""
    calls = [Call("weather", '{"city": "Łódź 🎉"}', "call_a"), Call("weather", '{"city": "Rome"}', "call_b")]
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    answer = reply("naïve 🎉 text", reasoning="hm — ünd", calls=calls, usage=usage, crlf=crlf, one_chunk=True)
    (body,) = answer.parts
    assert isinstance(body, bytes)
    whole = facts(run(body)[0])
    assert whole[:3] == ("naïve 🎉 text", "hm — ünd", ["weather", "weather"])
    assert whole[3] is not None
    assert whole[3].tool_calls == tuple(ToolCall(call.id, call.name, call.arguments) for call in calls)
    assert whole[3].usage == Usage(9, 3)
    for cut in range(len(body) + 1):
        assert facts(run(body, cut=cut)[0]) == whole, cut
    decoder = new_decoder()
    pieces = [event for k in range(len(body)) for event in decoder.feed(body[k : k + 1])]
    assert facts([*pieces, *decoder.finish()]) == whole


def test_a_reply_that_ends_at_any_byte_is_complete_or_truncated() -> None:
    """Lesson 39: the reply is complete exactly from the finish reason on, and no exception is raised."""
    (body,) = reply("Hello", calls=[Call("now", "{}", "a")], one_chunk=True).parts
    assert isinstance(body, bytes)
    complete_from = body.index(b'"finish_reason":"tool_calls"')
    for end in range(len(body)):
        decoder = new_decoder()
        events = [*decoder.feed(body[:end]), *decoder.finish()]
        if isinstance(events[-1] if events else None, Finished):
            assert end > complete_from
        else:
            assert isinstance(decoder.problem, StreamCut | MalformedReply), end


def test_a_burst_is_one_event() -> None:
    """5,000 chunks in one read must not be 5,000 events for the rest of the host."""
    body = data(*(delta(content="x ") for _ in range(5_000)), delta("stop"))
    events, _ = run(body)
    assert events == [TextDelta("x " * 5_000), Finished("stop")]


def test_events_keep_their_order() -> None:
    """Reasoning, text and calls are joined only with neighbours of their kind."""
    body = data(
        delta(reasoning_content="a"),
        delta(reasoning_content="b"),
        delta(content="c"),
        delta(content="d"),
        delta(reasoning="e", content="f"),
        delta(tool_calls=[{"index": 0, "id": "i", "function": {"name": "now"}}]),
        delta("stop", content="g"),
    )
    assert run(body)[0] == [
        ReasoningDelta("ab"),
        TextDelta("cd"),
        ReasoningDelta("e", "reasoning"),
        TextDelta("f"),
        ToolCallStarted("now"),
        TextDelta("g"),
        Finished("tool_calls", (ToolCall("i", "now", "{}"),)),
    ]


def test_reasoning_sent_under_two_names_counts_once() -> None:
    """OpenRouter and vLLM send both."""
    assert run(data(delta(reasoning="a", reasoning_content="a"), delta("stop")))[0][0] == ReasoningDelta("a")


def test_content_parts_are_separated() -> None:
    """Mistral sends thinking and text as a list of content parts."""
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, {"type": "text", "text": "!"}]},
        {"type": "text", "text": "Yes"},
        {"type": "reference", "reference_ids": [1]},
        "plain",
    ]
    assert run(data(delta("stop", content=parts)))[0][:-1] == [
        ReasoningDelta("hm!", MISTRAL_THINKING),
        TextDelta("Yesplain"),
    ]


@pytest.mark.parametrize(
    "chunks",
    [
        [{"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}],
        [{"usage": {"prompt_tokens": 5, "completion_tokens": 1}}],
        [{"choices": [], "x_groq": {"id": "x", "usage": {"prompt_tokens": 5, "completion_tokens": 1}}}],
        [{"choices": [{"index": 0, "delta": {}}], "x_groq": {"usage": {"prompt_tokens": 5, "completion_tokens": 1}}}],
        [{"choices": [{"index": 0, "delta": {}, "usage": {"prompt_tokens": 5, "completion_tokens": 1}}]}],
        [
            {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 0}},
            {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
            {"choices": [], "usage": None},
        ],
    ],
)
def test_usage_is_found_at_each_endpoints_place(chunks: list[Any]) -> None:
    """Usage is read from a last chunk, from `x_groq` or from the choice (Moonshot).

    If it is repeated, the last counts.
    """
    assert finished(data(delta("stop", content="x"), *chunks)).usage == Usage(5, 1)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("model_length", "length"),
        ("content_filter", "filtered"),
        ("eos", "stop"),
        ("tool_calls", "stop"),
    ],
)
def test_finish_reasons_are_mapped(reason: str, stop: str) -> None:
    """An unknown finish reason counts as a stop, and so does `tool_calls` without a call."""
    assert finished(data(delta(reason, content="x"))).stop == stop


def test_the_reason_error_is_not_an_end() -> None:
    """OpenRouter ends a broken reply this way."""
    assert isinstance(run(data(delta("error", content="x")))[1].problem, StreamCut)


def test_null_and_missing_fields_are_harmless() -> None:
    """`tool_calls: null`, `choices: null`, a null delta, a choice without index and a refusal cause no error."""
    body = data(
        {"choices": None},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None, "role": "assistant"}, "index": None}]},
        {"object": "chat.completion.chunk"},
        delta(refusal="No."),
        delta("stop"),
    )
    assert run(body)[0] == [TextDelta("No."), Finished("stop")]


def test_other_choices_are_ignored() -> None:
    """`n` > 1 would mix two replies."""
    other = {"choices": [{"index": 1, "delta": {"content": "B"}, "finish_reason": "stop"}]}
    events, decoder = run(data(delta(content="A"), other))
    assert events == [TextDelta("A")]
    assert isinstance(decoder.problem, StreamCut)


def test_nothing_after_the_end_marker_counts() -> None:
    """Some gateways append a second stream."""
    body = data(delta("stop", content="A")) + b"data: [DONE]\n\n" + data(delta(content="B"))
    assert run(body)[0] == [TextDelta("A"), Finished("stop")]


def test_an_overflow_reported_inside_the_stream_is_an_overflow() -> None:
    """vLLM and llama.cpp answer 200 before they report the overflow (R-535)."""
    error = {"error": {"message": "This model's maximum context length is 4096 tokens", "code": 400}}
    for body in (data(error), b"event: error\n" + data(error), b"error: " + msgspec.json.encode(error) + b"\n\n"):
        assert isinstance(run(body)[1].problem, ContextOverflow)


def test_an_error_as_plain_json_in_an_event_stream_is_reported() -> None:
    """The content type is that of a stream, but the body is an error object."""
    body = b'{"error": {"message": "The model `x` does not exist"}}'
    assert "does not know the model" in str(run(body)[1].problem)


@pytest.mark.parametrize("body", [b"", b"\n\n\n", b": keep-alive\n\n", b"data: [DONE]\n\n", b"data:\n\n"])
def test_an_empty_reply_is_truncated(body: bytes) -> None:
    """It must not look like an answer without text."""
    assert isinstance(run(body)[1].problem, StreamCut)


def test_text_that_is_not_a_stream_is_malformed() -> None:
    """Prose in place of events is reported as a malformed reply."""
    assert isinstance(run(b"upstream connect error or disconnect\n")[1].problem, MalformedReply)


def test_a_reply_split_over_choices_is_one_reply() -> None:
    """Copilot splits a reply into several choices if it is not streamed."""
    call = {"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    body = {
        "choices": [
            {"finish_reason": "tool_calls", "message": {"content": "Let me see.", "role": "assistant"}},
            {"finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [call]}},
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    events = new_decoder().read_json(msgspec.json.encode(body))
    assert events[0] == TextDelta("Let me see.")
    assert events[-1] == Finished("tool_calls", (ToolCall("a", "now", "{}"),), Usage(1, 2))


def test_a_call_without_a_name_is_malformed() -> None:
    """It can neither be run nor answered."""
    body = data(delta(tool_calls=[{"index": 0, "id": "a", "function": {"arguments": "{}"}}]), delta("tool_calls"))
    assert isinstance(run(body)[1].problem, MalformedReply)


DONE = b"data: [DONE]\n\n"


def a_call(arguments: str) -> dict[str, Any]:
    return {"index": 0, "id": "c1", "function": {"name": "read", "arguments": arguments}}


def test_a_reply_without_a_finish_reason_is_complete_if_its_parts_are() -> None:
    """Servers leave `finish_reason` out; `[DONE]` is an end marker, too (lesson 39)."""
    assert finished(data(delta(content="Hello")) + DONE).stop == "stop"
    done = finished(data(delta(tool_calls=[a_call('{"path": "a"}')])) + DONE)
    assert (done.stop, [call.arguments for call in done.tool_calls]) == ("tool_calls", ['{"path": "a"}'])
    assert finished(data(delta(tool_calls=[a_call("")])) + DONE).tool_calls[0].arguments == "{}"
    body = msgspec.json.encode({"choices": [{"message": {"role": "assistant", "content": "Hello"}}]})
    assert new_decoder().read_json(body)[-1] == Finished("stop")


@pytest.mark.parametrize(
    "body",
    [
        data(delta(content="Hello")),
        data(delta(tool_calls=[a_call('{"path": "a')])) + DONE,
        data(delta(role="assistant")) + DONE,
        data(delta("error", content="Hello")) + DONE,
    ],
)
def test_a_reply_with_incomplete_parts_is_truncated(body: bytes) -> None:
    """A missing end marker, a partial call, an empty reply or an error means that the reply is truncated."""
    assert isinstance(run(body)[1].problem, StreamCut)


@pytest.mark.sweep
def test_a_call_in_many_pieces_with_repeated_ids_is_read_once() -> None:
    """Arguments in tens of thousands of chunks take a second to join, not an hour."""
    pieces = ['{"text": "', *["abcd"] * 50_000, '"}']
    chunks = [delta(tool_calls=[{"index": 0, "id": "c1", "function": {"arguments": piece}}]) for piece in pieces]
    first = delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "write"}}])
    [call] = finished(data(first, *chunks) + DONE).tool_calls
    assert len(call.arguments) == 200_012
