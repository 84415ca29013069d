"""Every field of a reply replaced by what no provider should send: an error or a reply, never a crash (issue 9).

Values of other types, numbers without end, nesting below, at and beyond what readers of JSON take: 995 levels can be
read and not be written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from codecompanion.adapters.anthropic_messages.decode import MessagesDecoder
from codecompanion.adapters.base import Finished
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.openai_chat.decode import ChatDecoder
from codecompanion.adapters.openai_responses.decode import ResponsesDecoder
from codecompanion.adapters.reply_decoder import ReplyDecoder

ENDPOINT = Endpoint(name="test", base_url="https://api.test/v1", secrets=("sk-1",))
_IDS = count()
DECODERS: dict[str, Callable[[], ReplyDecoder]] = {
    "responses": lambda: ResponsesDecoder(ENDPOINT, "origin"),
    "chat": lambda: ChatDecoder(ENDPOINT, lambda: f"id-{next(_IDS)}", "origin"),
    "messages": lambda: MessagesDecoder(ENDPOINT, "origin", lambda: f"id-{next(_IDS)}"),
}
CALL = {"type": "function_call", "id": "fc", "call_id": "c", "name": "read", "arguments": "{}"}
SEALED = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "x"}], "encrypted_content": "s"}
SAID = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
RESPONSE = {"status": "completed", "model": "m", "output": [SAID, CALL, SEALED], "usage": {"input_tokens": 1}}
DELTA = {
    "role": "assistant",
    "content": "hi",
    "reasoning_content": "t",
    "reasoning_details": [{"type": "reasoning.text", "text": "x", "index": 0}],
    "tool_calls": [
        {"index": 0, "id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"},
         "extra_content": {"google": {"x": 1}}},
    ],
}  # fmt: skip
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}}
TOOL = {"type": "tool_use", "id": "t", "name": "read", "input": {"a": 1}}
THOUGHT = {"type": "thinking", "thinking": "x", "signature": "s"}
SERVER_TOOL = {"type": "server_tool_use", "id": "t", "name": "web", "input": {}}
INPUT = {"type": "input_json_delta", "partial_json": "{}"}
WHOLE: dict[str, Any] = {
    "responses": RESPONSE,
    "chat": {"choices": [{"message": DELTA, "finish_reason": "stop"}], "usage": USAGE},
    "messages": {"type": "message", "content": [{"type": "text", "text": "hi"}, TOOL, THOUGHT, SERVER_TOOL],
                 "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}},
}  # fmt: skip
STREAMS: dict[str, list[dict[str, Any]]] = {
    "responses": [
        {"type": "response.created", "response": {"model": "m"}},
        {"type": "response.output_item.added", "output_index": 0, "item": CALL},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
        {"type": "response.output_item.done", "output_index": 1, "item": SEALED},
        {"type": "response.output_text.delta", "output_index": 2, "item_id": "x", "delta": "hi"},
        {"type": "response.completed", "response": RESPONSE},
    ],
    "chat": [
        {"choices": [{"index": 0, "delta": DELTA, "finish_reason": None}], "model": "m"},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], "usage": USAGE},
    ],
    "messages": [
        {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": TOOL},
        {"type": "content_block_delta", "index": 0, "delta": INPUT},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": THOUGHT},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": SERVER_TOOL},
        {"type": "content_block_delta", "index": 2, "delta": INPUT},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3},
         "context_management": {"applied_edits": [{"type": "x"}]}},
        {"type": "message_stop"},
    ],
}  # fmt: skip
PLAIN = [None, 3, -1, 1.5, "x", "", True, [], {}, [None], [3], {"a": None}, 10**400]
VALUES = [json.dumps(value) for value in PLAIN] + [
    opened * depth + inner + closed * depth
    for depth in (500, 985, 995, 2000, 100_000)
    for opened, inner, closed in (("[", "", "]"), ('{"a":', "1", "}"))
]
_HERE = "\x01here"


def with_one_replaced(value: Any) -> Iterator[str]:
    """Give the value as JSON with each of its fields in turn replaced by each of the values."""
    for marked in _marked(value):
        text = json.dumps(marked)
        yield from (text.replace(json.dumps(_HERE), replacement) for replacement in VALUES)


def _marked(value: Any) -> Iterator[Any]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        for changed in (_HERE, *_marked(inner)):
            copy = value.copy()
            copy[key] = changed
            yield copy


def assert_ends(decoder: ReplyDecoder, events: list[Any]) -> None:
    """A reply is whole, or says what is wrong with it."""
    assert (decoder.problem is None) == any(isinstance(event, Finished) for event in events)


@pytest.mark.parametrize("name", DECODERS)
def test_a_stream_with_a_broken_field_ends_as_a_reply_or_as_an_error(name):
    """Lesson 39: what arrived before it is kept."""
    stream = [json.dumps(event) for event in STREAMS[name]]
    for place, event in enumerate(STREAMS[name]):
        for broken in with_one_replaced(event):
            body = "".join(f"data: {part}\n\n" for part in (*stream[:place], broken, *stream[place + 1 :]))
            decoder = DECODERS[name]()
            assert_ends(decoder, [*decoder.feed(body.encode()), *decoder.finish()])


@pytest.mark.parametrize("name", DECODERS)
def test_a_whole_body_with_a_broken_field_ends_as_a_reply_or_as_an_error(name):
    """Endpoints that do not stream."""
    decoder = DECODERS[name]()
    assert_ends(decoder, decoder.read_json(json.dumps(WHOLE[name]).encode()))
    assert decoder.problem is None
    for broken in with_one_replaced(WHOLE[name]):
        decoder = DECODERS[name]()
        assert_ends(decoder, decoder.read_json(broken.encode()))


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("body", [b"", b" \n"])
def test_a_body_without_anything_is_called_empty(name, body):
    """Not "a chunk is not JSON": the user never heard of chunks."""
    decoder = DECODERS[name]()
    assert decoder.read_json(body) == []
    assert "the reply was empty" in str(decoder.problem)
