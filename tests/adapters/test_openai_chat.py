"""Tests of replies from a loopback server that sends real Chat Completions bytes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from codecompanion.adapters.base import ReasoningDelta, TextDelta, ToolCallStarted
from codecompanion.model.messages import ToolCall, Usage
from tests.adapters.conftest import WEATHER, MakeAdapter, collect, request
from tests.providers.chat.answers import Call, reply, whole_reply
from tests.providers.chat.server import ChatServer

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 5},
}


async def test_a_reply_streams_and_ends_with_its_usage(make_adapter: MakeAdapter) -> None:
    """Lesson 7: the figures do not overlap."""
    async with ChatServer([reply("Hello, world. ünïcödé 🎉", usage=USAGE)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.text == "Hello, world. ünïcödé 🎉"
    assert outcome.finished.stop == "stop"
    assert outcome.finished.model == "test-model"
    assert outcome.finished.usage == Usage(
        input_tokens=40, output_tokens=20, cache_read_tokens=60, cache_write_tokens=0, reasoning_tokens=5
    )
    assert outcome.finished.usage is not None
    assert outcome.finished.usage.prompt_tokens == 100


async def test_a_reply_without_usage_is_marked(make_adapter: MakeAdapter) -> None:
    """The usage is None rather than zero tokens."""
    async with ChatServer([reply("Hello")]) as server:
        adapter = make_adapter(server.url, include_usage=False)
        outcome = await collect(adapter)
        body = server.requests[0].json
    assert outcome.finished.usage is None
    assert "stream_options" not in body


async def test_text_is_visible_before_the_reply_is_complete(make_adapter: MakeAdapter) -> None:
    """The first text is shown while the rest is still arriving."""
    gate = asyncio.Event()
    async with ChatServer([reply("Hello", gate=gate, gate_after=2)]) as server:
        seen = ""
        async with aclosing(make_adapter(server.url).stream(request())) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    seen += event.text
                    if not gate.is_set():
                        assert seen == "Hell"
                        gate.set()
    assert seen == "Hello"


async def test_parallel_tool_calls_are_joined_by_index(make_adapter: MakeAdapter) -> None:
    """The deltas of both calls arrive interleaved."""
    calls = [Call("weather", '{"city": "Łódź"}', "call_a"), Call("weather", '{"city": "Rome"}', "call_b")]
    async with ChatServer([reply("Let me look.", calls=calls)]) as server:
        outcome = await collect(make_adapter(server.url), request(tools=(WEATHER,)))
    assert outcome.finished.stop == "tool_calls"
    assert outcome.finished.tool_calls == (
        ToolCall("call_a", "weather", '{"city": "Łódź"}'),
        ToolCall("call_b", "weather", '{"city": "Rome"}'),
    )
    assert [event for event in outcome.events if isinstance(event, ToolCallStarted)] == [ToolCallStarted("weather")] * 2


async def test_a_call_without_arguments_gets_an_empty_object(make_adapter: MakeAdapter) -> None:
    """An empty string would be sent back forever and is not JSON."""
    async with ChatServer([reply(calls=[Call("now", "", "call_a")])]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.finished.tool_calls == (ToolCall("call_a", "now", "{}"),)


async def test_calls_without_ids_get_ids(make_adapter: MakeAdapter) -> None:
    """`Finished` promises ids that are neither empty nor repeated."""
    calls = [Call("weather", '{"city": "Oslo"}'), Call("weather", '{"city": "Rome"}')]
    async with ChatServer([reply(calls=calls, whole_arguments=True, finish="stop")]) as server:
        outcome = await collect(make_adapter(server.url, ids=["one", "two"]))
    assert [call.id for call in outcome.finished.tool_calls] == ["one", "two"]
    assert outcome.finished.stop == "tool_calls"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
async def test_reasoning_is_kept_separate_with_its_field(make_adapter: MakeAdapter, field: str) -> None:
    """It must never be mistaken for the reply (lesson 15)."""
    async with ChatServer([reply("Yes.", reasoning="Let me think.", reasoning_field=field)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert (outcome.reasoning, outcome.text) == ("Let me think.", "Yes.")
    assert {event.field for event in outcome.events if isinstance(event, ReasoningDelta)} == {field}


async def test_a_complete_json_answer_is_accepted(make_adapter: MakeAdapter) -> None:
    """A reply that is one JSON object is read, because some gateways ignore `stream`."""
    answer = whole_reply("Hello", calls=[Call("weather", "{}", "call_a")], usage=USAGE)
    async with ChatServer([answer]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.text == "Hello"
    assert outcome.finished.tool_calls == (ToolCall("call_a", "weather", "{}"),)
    assert outcome.finished.usage is not None


@pytest.mark.parametrize("content_type", ["text/plain", "application/octet-stream", "application/json", ""])
async def test_a_mislabelled_event_stream_is_read(make_adapter: MakeAdapter, content_type: str) -> None:
    """An event stream without a content type, or with a wrong one, is read: small servers send such streams."""
    async with ChatServer([reply("Hello", content_type=content_type)]) as server:
        assert (await collect(make_adapter(server.url))).text == "Hello"


async def test_the_bytes_may_be_split_anywhere(make_adapter: MakeAdapter) -> None:
    """A sample of split sizes is tested over the socket; every position is tried on the decoder itself."""
    calls = [Call("weather", '{"city": "Łódź"}', "call_a")]
    sizes = [1, 2, 3, 5, 7, 11, 64, 1000]
    script = [reply("naïve 🎉", calls=calls, usage=USAGE, split_bytes=size, crlf=size % 2 == 0) for size in sizes]
    async with ChatServer(script) as server:
        adapter = make_adapter(server.url)
        for size in sizes:
            outcome = await collect(adapter)
            assert (size, outcome.text) == (size, "naïve 🎉")
            assert outcome.finished.tool_calls[0].arguments == '{"city": "Łódź"}'
            assert outcome.finished.usage is not None


async def test_keep_alives_and_comments_are_not_text(make_adapter: MakeAdapter) -> None:
    """OpenRouter sends `: OPENROUTER PROCESSING` during reasoning."""
    noise = b": OPENROUTER PROCESSING\n\n:\n\nevent: ping\ndata: {}\n\nid: 7\nretry: 3000\n\n"
    async with ChatServer([reply("Hello", insert=noise, insert_at=1)]) as server:
        assert (await collect(make_adapter(server.url))).text == "Hello"


async def test_an_end_without_done_is_accepted(make_adapter: MakeAdapter) -> None:
    """Copilot and Mistral were recorded ending the body after the finish reason."""
    async with ChatServer([reply("Hello", done=False, usage=USAGE)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.finished.stop == "stop"
    assert outcome.finished.usage is not None


async def test_a_reply_at_the_output_limit_keeps_only_complete_calls(make_adapter: MakeAdapter) -> None:
    """A call with truncated arguments cannot be run."""
    calls = [Call("weather", '{"city": "Oslo"}', "call_a"), Call("weather", '{"city": "Ro', "call_b")]
    async with ChatServer([reply("Hm", calls=calls, finish="length")]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.finished.stop == "length"
    assert [call.id for call in outcome.finished.tool_calls] == ["call_a"]


async def test_a_filtered_reply_runs_no_tools(make_adapter: MakeAdapter) -> None:
    """The finish reason `content_filter` ends the reply."""
    async with ChatServer([reply("I", calls=[Call("rm", "{}", "a")], finish="content_filter")]) as server:
        outcome = await collect(make_adapter(server.url))
    assert (outcome.finished.stop, outcome.finished.tool_calls) == ("filtered", ())
