"""Every field of a reply is replaced by invalid values: the result is an error or a reply, never a crash.

The values have other types, are endless numbers, or are nested below, at and beyond the limit of JSON parsers: 995
levels can be parsed but not written again.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from codecompanion.adapters.anthropic_messages.decode import MessagesDecoder
from codecompanion.adapters.base import Finished, TextDelta
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.openai_chat.decode import ChatDecoder
from codecompanion.adapters.openai_responses.decode import ResponsesDecoder
from codecompanion.adapters.reply_decoder import ReplyDecoder
from codecompanion.formats.byte_limits import MAX_REPLY_CHARS

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
    """Yield the value as JSON, each time with another field replaced by another of the invalid values."""
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
    """Assert that a reply is complete, or reports its error."""
    assert (decoder.problem is None) == any(isinstance(event, Finished) for event in events)


@pytest.mark.parametrize("name", DECODERS)
def test_a_stream_with_a_broken_field_ends_as_a_reply_or_as_an_error(name):
    """Lesson 39: text received before the broken field is kept."""
    stream = [json.dumps(event) for event in STREAMS[name]]
    for place, event in enumerate(STREAMS[name]):
        for broken in with_one_replaced(event):
            body = "".join(f"data: {part}\n\n" for part in (*stream[:place], broken, *stream[place + 1 :]))
            decoder = DECODERS[name]()
            assert_ends(decoder, [*decoder.feed(body.encode()), *decoder.finish()])


@pytest.mark.parametrize("name", DECODERS)
def test_a_body_with_a_broken_field_ends_as_a_reply_or_as_an_error(name):
    """These bodies come from endpoints that do not stream."""
    decoder = DECODERS[name]()
    assert_ends(decoder, decoder.read_json(json.dumps(WHOLE[name]).encode()))
    assert decoder.problem is None
    for broken in with_one_replaced(WHOLE[name]):
        decoder = DECODERS[name]()
        assert_ends(decoder, decoder.read_json(broken.encode()))


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("body", [b"", b" \n"])
def test_an_empty_body_is_called_empty(name, body):
    """The error is not "a chunk is not JSON": users do not know chunks."""
    decoder = DECODERS[name]()
    assert decoder.read_json(body) == []
    assert "the reply was empty" in str(decoder.problem)


def events(*payloads: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)


FAT = [[]] * 60_000
"""240 kB of JSON, 4 MB of objects."""
FLOODS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "details with new fields": (
        "chat",
        lambda n: {"choices": [{"delta": {"reasoning_details": [{"type": "t", "index": 0, f"k{n}": FAT}]}}]},
    ),
    "details without end": (
        "chat",
        lambda n: {"choices": [{"delta": {"reasoning_details": [{"type": "t", "index": n, "k": FAT}]}}]},
    ),
    "details with long names": (
        "chat",
        lambda n: {"choices": [{"delta": {"reasoning_details": [{"type": "t", "index": 0, f"{n}" * 90_000: 1}]}}]},
    ),
    "texts with fields": (
        "messages",
        lambda n: {"type": "content_block_start", "index": n, "content_block": {"type": "text", "k": FAT}},
    ),
    "thoughts with fields": (
        "messages",
        lambda n: {"type": "content_block_start", "index": n, "content_block": {"type": "thinking", "k": FAT}},
    ),
    "tools of the server": (
        "messages",
        lambda n: {"type": "content_block_start", "index": n, "content_block": {"type": "x", "k": FAT}},
    ),
    "usage with new fields": (
        "messages",
        lambda n: {"type": "message_delta", "delta": {}, "usage": {f"k{n}": "x" * 240_000}},
    ),
    "items with long names": (
        "responses",
        lambda n: {"type": "response.output_text.delta", "item_id": f"{n}" * 90_000, "delta": ""},
    ),
    "long phases": (
        "responses",
        lambda n: {
            "type": "response.output_item.added",
            "output_index": n,
            "item": {"type": "message", "phase": f"{n}" * 90_000},
        },
    ),
    "parts of reasoning": (
        "responses",
        lambda n: {
            "type": "response.reasoning_text.delta",
            "output_index": n,
            "content_index": f"{n}" * 90_000,
            "delta": "x",
        },
    ),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_everything_kept_of_a_reply_is_counted(flood: str) -> None:
    """100 MB in fields that nothing reads: they are not stored, or they end the reply."""
    family, event = FLOODS[flood]
    decoder = DECODERS[family]()
    tracemalloc.start()
    for number in range(400):
        decoder.feed(events(event(number)))
        if decoder.problem is not None:
            break
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * MAX_REPLY_CHARS
    assert decoder.problem is None or "the reply is larger than" in str(decoder.problem)


LONG: dict[str, tuple[str, Any]] = {
    "choices": ("chat", {"choices": [{"index": 1}] * 20_000}),
    "calls": ("chat", {"choices": [{"delta": {"tool_calls": [{"index": 0}] * 20_000}}]}),
    "texts": ("chat", {"choices": [{"delta": {"content": [{"type": "text", "text": "a"}] * 20_000}}]}),
    "thoughts": (
        "chat",
        {"choices": [{"delta": {"content": [{"type": "thinking", "thinking": [{"text": "a"}] * 20_000}]}}]},
    ),
    "parts": (
        "responses",
        {"type": "response.output_item.done", "output_index": 0, "item": {**SAID, "content": SAID["content"] * 20_000}},
    ),
    "summary": (
        "responses",
        {"type": "response.output_item.done", "output_index": 0, "item": {**SEALED, "summary": [{}] * 20_000}},
    ),
}


@pytest.mark.parametrize("what", LONG)
def test_one_event_has_no_more_parts_than_a_reply(what: str) -> None:
    """They would block the loop."""
    family, event = LONG[what]
    decoder = DECODERS[family]()
    decoder.feed(events(event))
    assert "the reply has more than 10,000 parts" in str(decoder.problem)


def test_a_usage_of_endless_passes_is_read_from_its_end() -> None:
    decoder = DECODERS["messages"]()
    usage = {"iterations": [{"type": "message", "input_tokens": n} for n in range(20_000)]}
    decoder.feed(events({"type": "message_start", "message": {"usage": usage}}, {"type": "message_stop"}))
    (finished,) = decoder.finish()
    assert isinstance(finished, Finished)
    assert finished.usage is not None
    assert (finished.usage.input_tokens, len(finished.other_passes)) == (19_999, 999)


def test_repeated_call_ids_are_replaced_in_linear_time() -> None:
    decoder = DECODERS["responses"]()
    calls = [{**CALL, "id": f"fc{n}", "call_id": "c" * 20_000} for n in range(400)]
    decoder.feed(events({"type": "response.completed", "response": {"status": "completed", "output": calls}}))
    began = time.process_time()
    finished = decoder.finish()[-1]
    assert time.process_time() - began < 0.2
    assert isinstance(finished, Finished)
    assert len({call.id for call in finished.tool_calls}) == 400


@pytest.mark.parametrize("family", DECODERS)
@pytest.mark.parametrize("end", [b'data: {"choi', b"data: [DON", b"data: {"])
def test_half_an_event_at_the_end_is_a_truncation(family: str, end: bytes) -> None:
    decoder = DECODERS[family]()
    for payload in STREAMS[family][:2]:
        decoder.feed(events({**payload, "choices": [{"delta": {"content": "hi"}}]}))
    decoder.feed(end)
    decoder.finish()
    assert "the reply was incomplete" in str(decoder.problem)


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (rb"a\ud83d", "a\ufffd"),
        (rb"\uDE00b", "\ufffdb"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud83d \ud83d", "\\ud83d \ufffd"),
        (b"a\xf0\x9f", "a\ufffd"),
    ],
)
def test_half_a_character_does_not_end_a_reply(name: str, sent: bytes, text: str) -> None:
    """Servers split a character at a token boundary: as half of an escape, or as invalid UTF-8."""
    said = [
        STREAMS["messages"][0],
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
        *STREAMS["messages"][-2:],
    ]
    stream = b"".join(
        b"data: %s\n\n" % json.dumps(event).encode() for event in (said if name == "messages" else STREAMS[name])
    )
    assert b'"hi"' in stream
    decoder = DECODERS[name]()
    events = [*decoder.feed(stream.replace(b'"hi"', b'"%s"' % sent)), *decoder.finish()]
    assert decoder.problem is None
    assert text in "".join(event.text for event in events if isinstance(event, TextDelta))
