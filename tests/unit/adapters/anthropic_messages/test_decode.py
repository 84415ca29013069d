"""Events of the Messages API, one kind at a time; the recorded ones are in `tests/external`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codecompanion.adapters.anthropic_messages.decode import MessagesDecoder
from codecompanion.adapters.base import (
    CompactionBegun,
    CompactionDone,
    Finished,
    ReasoningDelta,
    ReasoningDone,
    ServerEdit,
    StreamEvent,
    TextDelta,
    ToolCallStarted,
)
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.errors import MalformedReply, Overloaded, StreamCut
from codecompanion.model.messages import CompactionPart, ToolCall, Usage

ORIGIN = "anthropic@api.test"


def decoder() -> MessagesDecoder:
    numbers = iter(range(100))
    return MessagesDecoder(Endpoint(name="t", base_url="https://api.test"), ORIGIN, lambda: f"new_{next(numbers)}")


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        event("content_block_start", index=index, content_block=start),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def stream(*blocks: list[dict[str, Any]], stop: str | None = "end_turn", end: bool = True, **delta: Any) -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 1}
    events = [event("message_start", message={"model": "claude-x", "usage": usage, "content": []})]
    events += [one for several in blocks for one in several]
    events.append(event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 5}, **delta))
    if end:
        events.append(event("message_stop"))
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


def decode(body: bytes) -> list[StreamEvent]:
    reader = decoder()
    events = [*reader.feed(body), *reader.finish()]
    assert reader.problem is None, reader.problem
    return events


TEXT = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "He"}, {"type": "text_delta", "text": "y"})


def test_text_of_one_piece_is_one_event() -> None:
    """A burst of text costs the host only one event."""
    assert decode(stream(TEXT)) == [TextDelta("Hey"), Finished("stop", (), Usage(10, 5), "claude-x")]


def test_thinking_is_shown_and_kept_encrypted() -> None:
    """All of its fields are kept, including unknown ones."""
    start = {"type": "thinking", "thinking": "", "signature": "", "future": {"a": 1}}
    deltas = (
        {"type": "thinking_delta", "thinking": "let "},
        {"type": "thinking_delta", "thinking": "me", "estimated_tokens": 5},
        {"type": "signature_delta", "signature": "sig"},
    )
    shown, sealed, _ = decode(stream(block(0, start, *deltas)))
    assert shown == ReasoningDelta("let me", "thinking")
    assert isinstance(sealed, ReasoningDone)
    assert sealed.origin == ORIGIN
    assert json.loads(sealed.encrypted) == {**start, "thinking": "let me", "signature": "sig"}


def test_hidden_thinking_is_kept_encrypted() -> None:
    """With `display: omitted`, the text is empty, but the signature must be sent back."""
    start = {"type": "thinking", "thinking": "", "signature": ""}
    (sealed, _) = decode(stream(block(0, start, {"type": "signature_delta", "signature": "sig"})))
    assert isinstance(sealed, ReasoningDone)


def test_thinking_without_a_signature_is_not_sent_back() -> None:
    """Such thinking comes from gateways in front of other models."""
    start = {"type": "thinking", "thinking": "whole", "signature": ""}
    assert decode(stream(block(0, start)))[0] == ReasoningDelta("whole", "thinking")
    assert not any(isinstance(one, ReasoningDone) for one in decode(stream(block(0, start))))


def test_server_tools_are_kept_unchanged() -> None:
    """A paused reply must be sent back in full."""
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"encrypted_content": "x"}]}
    delta = {"type": "input_json_delta", "partial_json": '{"query":"q"}'}
    first, second, finished = decode(stream(block(0, use, delta), block(1, found), stop="pause_turn"))
    assert isinstance(first, ReasoningDone)
    assert isinstance(second, ReasoningDone)
    assert json.loads(first.encrypted) == {**use, "input": {"query": "q"}}
    assert json.loads(second.encrypted) == found
    assert isinstance(finished, Finished)
    assert finished.stop == "paused"


def test_calls_are_reported_at_their_start_and_complete_at_the_end() -> None:
    """They keep their position among the text; missing or repeated ids are replaced."""
    calls = [
        block(k, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, {"type": "input_json_delta", **given})
        for k, (call_id, name, given) in enumerate(
            [("a", "x", {"partial_json": '{"p":'}), ("a", "y", {}), (None, "z", {"partial_json": ""})], 1
        )
    ]
    calls[0].insert(2, event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": "1}"}))
    events = decode(stream(TEXT, *calls, stop="tool_use"))
    assert events[:4] == [TextDelta("Hey"), ToolCallStarted("x"), ToolCallStarted("y"), ToolCallStarted("z")]
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.tool_calls == (
        ToolCall("a", "x", '{"p":1}'),
        ToolCall("new_0", "y", "{}"),
        ToolCall("new_1", "z", "{}"),
    )


@pytest.mark.parametrize(
    ("start", "deltas"),
    [
        ({"content": None}, [{"content": "sum", "encrypted_content": "enc"}]),
        ({"content": "sum", "encrypted_content": "enc"}, []),
        ({"content": None}, [{"content": "sum"}, {"encrypted_content": "enc"}]),
    ],
)
def test_a_compaction_is_kept_unchanged(start: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
    """It may come in one delta, in two, or complete at its start (on demand)."""
    body = stream(block(0, {"type": "compaction", **start}, *({"type": "compaction_delta", **one} for one in deltas)))
    begun, done, _ = decode(body)
    assert begun == CompactionBegun()
    assert isinstance(done, CompactionDone)
    assert isinstance(done.part, CompactionPart)
    assert (done.part.origin, done.part.text) == (ORIGIN, "sum")
    assert json.loads(done.part.encrypted) == [{"type": "compaction", "content": "sum", "encrypted_content": "enc"}]


def test_a_failed_compaction_is_ignored() -> None:
    """`content: null`."""
    events = decode(stream(block(0, {"type": "compaction", "content": None}), TEXT))
    assert events[:2] == [CompactionBegun(), CompactionDone(None)]


def test_server_edits_and_passes_are_reported() -> None:
    """R-538, R-541."""
    applied = [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 70, "cleared_tool_uses": 3}]
    finished = decode(stream(TEXT, context_management={"applied_edits": applied}))[-1]
    assert isinstance(finished, Finished)
    assert finished.server_edits == (ServerEdit("clear_tool_uses_20250919", 70, 3),)


def test_citations_and_unknown_events_are_dropped() -> None:
    """They contain no needed data."""
    cited = block(0, {"type": "text", "text": "a"}, {"type": "citations_delta", "citation": {"url": "u"}})
    body = stream([event("ping")], cited, [event("content_block_sparkle", index=0)])
    assert decode(body)[0] == TextDelta("a")


def test_a_reply_without_stop_reason_is_complete_with_its_end_marker() -> None:
    """`message_stop` decides (lesson 39)."""
    finished = decode(stream(TEXT, stop=None))[-1]
    assert isinstance(finished, Finished)
    assert finished.stop == "stop"


def test_without_the_end_marker_a_reply_is_truncated() -> None:
    """This applies even if the stop reason has arrived."""
    reader = decoder()
    assert [*reader.feed(stream(TEXT, end=False)), *reader.finish()] == [TextDelta("Hey")]
    assert isinstance(reader.problem, StreamCut)


def test_an_openai_end_marker_after_it_is_ignored() -> None:
    """Gateways append such a marker."""
    assert isinstance(decode(stream(TEXT) + b"data: [DONE]\n\n")[-1], Finished)
    reader = decoder()
    reader.feed(stream(TEXT, end=False) + b"data: [DONE]\n\n")
    reader.finish()
    assert isinstance(reader.problem, StreamCut)


@pytest.mark.parametrize(
    "body",
    [
        b"data: not json\n\n",
        b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n',
        b'data: {"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}\n\n',
        b'data: {"type":"content_block_start","index":0}\n\n',
        b"data: [1]\n\n",
        b"<html>\n\n",
        stream(block(0, {"type": "tool_use", "id": "a", "input": {}}), stop="tool_use"),
    ],
)
def test_text_that_is_not_a_reply_is_malformed(body: bytes) -> None:
    """The error shows the text."""
    reader = decoder()
    reader.feed(body)
    reader.finish() if reader.problem is None else None
    assert type(reader.problem) is MalformedReply


@pytest.mark.parametrize("body", [b"[]", b"nope", b'{"type":"message"}'])
def test_json_that_is_not_a_message_is_refused(body: bytes) -> None:
    """It may come from a gateway that does not stream."""
    reader = decoder()
    assert reader.read_json(body) == []
    assert reader.problem is not None


def test_an_error_event_before_the_reply_has_its_class() -> None:
    """Such an error can be retried; a later one truncates the reply."""
    broken = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    body = f"event: error\ndata: {json.dumps(broken)}\n\n".encode()
    first = decoder()
    assert first.feed(body) == []
    assert isinstance(first.problem, Overloaded)
    second = decoder()
    assert second.feed(stream(TEXT, end=False) + body) == [TextDelta("Hey")]
    assert isinstance(second.problem, StreamCut)
