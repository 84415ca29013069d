"""The Chat Completions adapter against a loopback server that speaks the real bytes."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from contextlib import aclosing

import pytest

from codecompanion.adapters.base import AdapterSettings, ReasoningDelta, RetryScheduled, TextDelta, ToolCallStarted
from codecompanion.adapters.chat_render import ChatRenderer, RenderOptions
from codecompanion.adapters.openai_chat import OpenAIChat
from codecompanion.adapters.redact import HIDDEN
from codecompanion.errors import (
    AuthenticationFailed,
    ContextOverflow,
    MalformedReply,
    MissingKey,
    ModelNotFound,
    NetworkFailed,
    Overloaded,
    RateLimited,
    RequestRejected,
    StreamCut,
)
from codecompanion.messages import ImagePart, Message, ReasoningPart, TextPart, ToolCall, Usage
from tests.adapters.chat_answers import CLOSE, DROP, Answer, Call, failure, plain, reply, silence, whole_reply
from tests.adapters.chat_server import ChatServer
from tests.adapters.chat_thread import ChatServerThread
from tests.adapters.conftest import KEY, WEATHER, MakeAdapter, collect, request, user

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


async def test_a_reply_without_usage_says_so(make_adapter: MakeAdapter) -> None:
    """The counter must see None, not zero tokens."""
    async with ChatServer([reply("Hello")]) as server:
        adapter = make_adapter(server.url, include_usage=False)
        outcome = await collect(adapter)
        body = server.requests[0].json
    assert outcome.finished.usage is None
    assert "stream_options" not in body


async def test_text_is_visible_before_the_reply_is_complete(make_adapter: MakeAdapter) -> None:
    """The first piece must not wait for the last."""
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


async def test_parallel_tool_calls_are_put_together_by_index(make_adapter: MakeAdapter) -> None:
    """The deltas of both calls arrive mixed."""
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
    """An empty string would be sent back for ever and is no JSON."""
    async with ChatServer([reply(calls=[Call("now", "", "call_a")])]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.finished.tool_calls == (ToolCall("call_a", "now", "{}"),)


async def test_calls_without_ids_get_ids(make_adapter: MakeAdapter) -> None:
    """`Finished` promises ids that are never empty nor repeated."""
    calls = [Call("weather", '{"city": "Oslo"}'), Call("weather", '{"city": "Rome"}')]
    async with ChatServer([reply(calls=calls, whole_arguments=True, finish="stop")]) as server:
        outcome = await collect(make_adapter(server.url, ids=["one", "two"]))
    assert [call.id for call in outcome.finished.tool_calls] == ["one", "two"]
    assert outcome.finished.stop == "tool_calls"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
async def test_reasoning_is_kept_apart_with_its_field(make_adapter: MakeAdapter, field: str) -> None:
    """It must never be mistaken for the reply (lesson 15)."""
    async with ChatServer([reply("Yes.", reasoning="Let me think.", reasoning_field=field)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert (outcome.reasoning, outcome.text) == ("Let me think.", "Yes.")
    assert {event.field for event in outcome.events if isinstance(event, ReasoningDelta)} == {field}


async def test_reasoning_goes_back_only_where_the_endpoint_wants_it(make_adapter: MakeAdapter) -> None:
    """OpenAI refuses unknown keys in messages; DeepSeek's thinking mode wants its own field back."""
    parts = (ReasoningPart("hm", "reasoning_content"), TextPart("Yes."))
    history = (user(), Message(id="a", role="assistant", content=parts), user("Sure?", 1))
    async with ChatServer() as server:
        assert (await collect(make_adapter(server.url), request(*history))).error is None
        assert "reasoning_content" not in server.requests[0].json["messages"][1]
    async with ChatServer(reasoning_fields=("reasoning_content",)) as server:
        adapter = make_adapter(server.url, options=RenderOptions(send_reasoning=True))
        assert (await collect(adapter, request(*history))).error is None
        assert server.requests[0].json["messages"][1]["reasoning_content"] == "hm"


async def test_an_image_goes_out_as_a_data_url(make_adapter: MakeAdapter) -> None:
    """Blobs are read by their hash; a URL passes through."""
    content = (TextPart("What is this?"), ImagePart(sha256="abc", path="a.png"), ImagePart(url="https://x.test/b.png"))
    async with ChatServer([reply("A cat.")]) as server:
        adapter = make_adapter(server.url, blobs={"abc": b"\x89PNG"})
        assert (await collect(adapter, request(Message(id="u", role="user", content=content)))).text == "A cat."
        sent = server.requests[0].json["messages"][0]["content"]
    assert [part.get("image_url", {}).get("url") for part in sent] == [
        None,
        "data:image/png;base64,iVBORw==",
        "https://x.test/b.png",
    ]


async def test_a_missing_image_does_not_stop_the_chat(make_adapter: MakeAdapter) -> None:
    """A blob that is gone becomes a sentence (nothing is hidden from the model)."""
    content = (TextPart("What is this?"), ImagePart(sha256="gone", path="a.png"))
    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url), request(Message(id="u", role="user", content=content)))
        sent = server.requests[0].json["messages"][0]["content"]
    assert outcome.error is None
    assert sent[1] == {"type": "text", "text": "[The image a.png could not be read.]"}


async def test_a_whole_json_answer_is_accepted(make_adapter: MakeAdapter) -> None:
    """Some gateways do not stream although they are asked to."""
    answer = whole_reply("Hello", calls=[Call("weather", "{}", "call_a")], usage=USAGE)
    async with ChatServer([answer]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.text == "Hello"
    assert outcome.finished.tool_calls == (ToolCall("call_a", "weather", "{}"),)
    assert outcome.finished.usage is not None


@pytest.mark.parametrize("content_type", ["text/plain", "application/octet-stream", "application/json", ""])
async def test_a_mislabelled_event_stream_is_read(make_adapter: MakeAdapter, content_type: str) -> None:
    """Small servers send no content type, or a wrong one."""
    async with ChatServer([reply("Hello", content_type=content_type)]) as server:
        assert (await collect(make_adapter(server.url))).text == "Hello"


async def test_a_web_page_instead_of_a_reply_is_named(make_adapter: MakeAdapter) -> None:
    """A login page of a proxy with status 200."""
    page = b"<!doctype html><html><head><title>Sign in to Corp</title></head></html>"
    async with ChatServer([plain(page, content_type="text/html; charset=utf-8")]) as server:
        outcome = await collect(make_adapter(server.url))
    assert isinstance(outcome.error, MalformedReply)
    assert "text/html" in str(outcome.error)
    assert "Sign in to Corp" in str(outcome.error)
    assert "base_url" in str(outcome.error)


async def test_json_that_is_no_reply_is_named(make_adapter: MakeAdapter) -> None:
    """A health page with status 200 must not pass as an empty answer."""
    async with ChatServer([plain(b'{"status": "ok"}', content_type="application/json")]) as server:
        outcome = await collect(make_adapter(server.url, max_retries=0))
    assert isinstance(outcome.error, StreamCut | MalformedReply)


@pytest.mark.parametrize("status", [200, 400])
async def test_an_error_object_with_any_status_is_an_error(make_adapter: MakeAdapter, status: int) -> None:
    """Gateways answer 200 with an error object."""
    body = b'{"error": {"message": "Unknown field: foo", "code": "bad_request"}}'
    async with ChatServer([plain(body, content_type="application/json", status=status)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert isinstance(outcome.error, RequestRejected)
    assert "Unknown field: foo." in str(outcome.error)


async def test_the_bytes_may_be_cut_anywhere(make_adapter: MakeAdapter) -> None:
    """A sample over the socket; every position is tried on the decoder itself."""
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


async def test_keep_alives_and_comments_are_no_text(make_adapter: MakeAdapter) -> None:
    """OpenRouter sends `: OPENROUTER PROCESSING` while a model thinks."""
    noise = b": OPENROUTER PROCESSING\n\n:\n\nevent: ping\ndata: {}\n\nid: 7\nretry: 3000\n\n"
    async with ChatServer([reply("Hello", insert=noise, insert_at=1)]) as server:
        assert (await collect(make_adapter(server.url))).text == "Hello"


async def test_an_end_without_done_is_an_end(make_adapter: MakeAdapter) -> None:
    """Copilot and Mistral were recorded ending the body after the finish reason."""
    async with ChatServer([reply("Hello", done=False, usage=USAGE)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.finished.stop == "stop"
    assert outcome.finished.usage is not None


@pytest.mark.parametrize("break_with", [DROP, CLOSE])
async def test_a_dropped_connection_keeps_what_arrived(make_adapter: MakeAdapter, break_with: str) -> None:
    """Lesson 39: a stream cut before its end marker is no complete answer."""
    async with ChatServer([reply("Hello, world", break_after=3, break_with=break_with)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.text == "Hello, w"
    assert isinstance(outcome.error, StreamCut)
    assert outcome.retries == []


async def test_a_body_that_ends_cleanly_without_a_finish_reason_is_cut(make_adapter: MakeAdapter) -> None:
    """Lesson 39: proxies end the HTTP body properly when their upstream breaks; some even add `[DONE]`."""
    half = reply("Hello", finish="stop").parts[:2]
    ends = [half, (*half, b"data: [DONE]\n\n")]
    async with ChatServer([Answer(parts=tuple(parts)) for parts in ends]) as server:
        adapter = make_adapter(server.url)
        for _ in ends:
            outcome = await collect(adapter)
            assert outcome.text == "Hell"
            assert isinstance(outcome.error, StreamCut)


async def test_an_error_in_the_middle_of_a_stream_is_told(make_adapter: MakeAdapter) -> None:
    """Lesson 39: the HTTP connection ends cleanly, the reply is not complete."""
    event = b'data: {"error": {"message": "The server had an error", "type": "server_error"}}\n\n'
    async with ChatServer([reply("Hello", insert=event, insert_at=2)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.text == "Hell"
    assert isinstance(outcome.error, StreamCut)
    assert "The server had an error." in str(outcome.error)


async def test_an_error_at_the_start_of_a_stream_is_tried_again(make_adapter: MakeAdapter) -> None:
    """Nothing was shown yet: an overloaded provider answers 200 and then the error."""
    event = b'data: {"error": {"message": "Overloaded", "type": "overloaded_error"}}\n\n'
    async with ChatServer([plain(event), reply("Hello")]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.text == "Hello"
    assert [retry.attempt for retry in outcome.retries] == [1]


@pytest.mark.parametrize(
    "garbage",
    [b'data: {"choices": [{"del\n\n', b"data: \xff\xfe\xfd\n\n", b'data: {"choices": 3}\n\n', b"data: [1, 2]\n\n"],
)
async def test_garbage_in_a_stream_is_an_error(make_adapter: MakeAdapter, garbage: bytes) -> None:
    """What arrived before it is kept."""
    async with ChatServer([reply("Hello", insert=garbage, insert_at=2)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.text == "Hell"
    assert isinstance(outcome.error, MalformedReply)


async def test_the_native_format_of_ollama_is_recognised(make_adapter: MakeAdapter) -> None:
    """The sentence says what to set."""
    line = b'{"model":"llama3","message":{"role":"assistant","content":"Hi"},"done":false}\n'
    async with ChatServer([plain(line, content_type="application/x-ndjson")]) as server:
        outcome = await collect(make_adapter(server.url))
    assert isinstance(outcome.error, MalformedReply)
    assert "/v1" in str(outcome.error)


async def test_a_reply_at_the_output_limit_keeps_whole_calls_only(make_adapter: MakeAdapter) -> None:
    """A call whose arguments were cut cannot be run."""
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


async def test_a_rate_limit_is_waited_out_and_announced(make_adapter: MakeAdapter) -> None:
    """Lesson 38: the retry and its wait are visible."""
    waits: list[float] = []
    limited = failure(429, "Slow down", code="rate_limit_exceeded", headers={"Retry-After": "7"})
    async with ChatServer([limited, reply("Hello")]) as server:
        outcome = await collect(make_adapter(server.url, waits=waits))
        assert len(server.requests) == 2
        assert server.requests[0].body == server.requests[1].body
    assert outcome.text == "Hello"
    assert waits == [7.0]
    assert outcome.events[0] == RetryScheduled(outcome.retries[0].reason, 1, 7000)
    assert outcome.retries[0].reason.startswith("test: too many requests (429). The provider says: Slow down.")


async def test_the_wait_grows_and_ends(make_adapter: MakeAdapter) -> None:
    """`max_retries` retries, then the error itself."""
    waits: list[float] = []
    async with ChatServer([failure(500, "Oops")] * 4) as server:
        outcome = await collect(make_adapter(server.url, waits=waits, max_retries=3))
        assert len(server.requests) == 4
    assert waits == [0.5, 1.0, 2.0]
    assert isinstance(outcome.error, Overloaded)
    assert str(outcome.error) == "test: the provider failed (500). The provider says: Oops."


async def test_a_provider_that_asks_for_a_long_wait_is_not_waited_for(make_adapter: MakeAdapter) -> None:
    """The user is told how long, and decides."""
    limited = failure(429, "Daily limit", headers={"Retry-After": "3600"})
    async with ChatServer([limited]) as server:
        outcome = await collect(make_adapter(server.url))
    assert isinstance(outcome.error, RateLimited)
    assert outcome.error.retry_after_s == 3600
    assert "Try again in 3600 s." in str(outcome.error)
    assert outcome.retries == []


async def test_an_empty_account_is_not_tried_again(make_adapter: MakeAdapter) -> None:
    """`insufficient_quota` is a 429 that waiting does not mend."""
    async with ChatServer([failure(429, "You exceeded your current quota", code="insufficient_quota")]) as server:
        outcome = await collect(make_adapter(server.url))
        assert len(server.requests) == 1
    assert isinstance(outcome.error, RateLimited)
    assert "no credit left" in str(outcome.error)


async def test_a_wait_is_cancelled_at_once(make_adapter: MakeAdapter) -> None:
    """Lesson 38: cancel works while waiting for the next attempt."""
    asleep = asyncio.Event()

    async def sleep(seconds: float) -> None:
        asleep.set()
        await asyncio.Event().wait()

    async with ChatServer([failure(500, "Oops")]) as server:
        task = asyncio.ensure_future(collect(make_adapter(server.url, sleep=sleep)))
        await asyncio.wait_for(asleep.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(server.requests) == 1


async def test_cancelling_ends_the_http_request(make_adapter: MakeAdapter) -> None:
    """The server sees the client leave, while streaming and before the first byte (lesson 41)."""
    for answer in (reply("Hello", gate=asyncio.Event(), gate_after=2), silence()):
        async with ChatServer([answer]) as server:
            task = asyncio.ensure_future(collect(make_adapter(server.url)))
            await server.wait_until(lambda: bool(server.requests))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.wait_until(lambda: server.requests[0].aborted)


async def test_a_consumer_that_stops_early_ends_the_http_request(make_adapter: MakeAdapter) -> None:
    """`aclosing` around the stream is the contract."""
    async with ChatServer([reply("Hello", gate=asyncio.Event(), gate_after=2)]) as server:
        async with aclosing(make_adapter(server.url).stream(request())) as events:
            async for _ in events:
                break
        await server.wait_until(lambda: server.requests[0].aborted)


async def test_silence_between_chunks_ends_the_reply(make_adapter: MakeAdapter) -> None:
    """The idle limit is between chunks; what arrived is kept."""
    async with ChatServer([reply("Hello", gate=asyncio.Event(), gate_after=2)]) as server:
        outcome = await collect(make_adapter(server.url, idle_timeout_s=0.05, max_retries=0))
    assert outcome.text == "Hell"
    assert isinstance(outcome.error, StreamCut)
    assert "sent nothing for 0.05 s" in str(outcome.error)


async def test_silence_before_the_first_byte_is_tried_again(make_adapter: MakeAdapter) -> None:
    """A hanging endpoint is a network failure."""
    async with ChatServer([silence(), reply("Hello")]) as server:
        outcome = await collect(make_adapter(server.url, idle_timeout_s=0.05))
    assert outcome.text == "Hello"
    assert len(outcome.retries) == 1


async def test_a_slow_reply_is_a_reply(make_adapter: MakeAdapter) -> None:
    """Pauses shorter than the idle limit do no harm."""
    async with ChatServer([reply("Hello", delay_s=0.01)]) as server:
        assert (await collect(make_adapter(server.url, idle_timeout_s=2.0))).text == "Hello"


async def test_no_server_is_a_sentence(make_adapter: MakeAdapter) -> None:
    """It names the address and what to check."""
    async with ChatServer() as server:
        url = server.url
    outcome = await collect(make_adapter(url, max_retries=1))
    assert isinstance(outcome.error, NetworkFailed)
    assert f"no connection to {url}" in str(outcome.error)
    assert len(outcome.retries) == 1


async def test_a_refused_key_is_named_by_its_place(make_adapter: MakeAdapter) -> None:
    """The sentence of the design: where the key came from and what to do."""
    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url, key="sk-wrong-key-0123456789"))
    assert isinstance(outcome.error, AuthenticationFailed)
    expected = "test: the key in TEST_KEY was refused (401). Check it or change the adapter with ga."
    assert str(outcome.error) == expected


async def test_an_unknown_model_is_named(make_adapter: MakeAdapter) -> None:
    """404 with a code."""
    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url), request(model="gpt-99"))
    assert isinstance(outcome.error, ModelNotFound)
    assert "gpt-99" in str(outcome.error)


async def test_a_wrong_path_is_not_taken_for_an_unknown_model(make_adapter: MakeAdapter) -> None:
    """A base_url without /v1 answers 404 as well."""
    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url.removesuffix("/v1")))
    assert isinstance(outcome.error, RequestRejected)
    assert "base_url" in str(outcome.error)


async def test_a_request_over_the_window_is_an_overflow(make_adapter: MakeAdapter) -> None:
    """R-535: the session recovers from this class."""
    async with ChatServer(window=50) as server:
        outcome = await collect(make_adapter(server.url), request(user("x" * 1000)))
    assert isinstance(outcome.error, ContextOverflow)
    assert outcome.retries == []


async def test_a_redirect_is_told_not_followed(make_adapter: MakeAdapter) -> None:
    """Following it would hand headers of the user to another host."""
    headers = {"Location": "https://other.test/v1/chat/completions?token=abc"}
    async with ChatServer([plain(b"", status=308, headers=headers, content_type="text/plain")]) as server:
        outcome = await collect(make_adapter(server.url))
    assert isinstance(outcome.error, RequestRejected)
    assert "https://other.test/v1/chat/completions" in str(outcome.error)
    assert "token" not in str(outcome.error)


async def test_a_broken_history_is_mended_before_it_is_sent(
    make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """Lesson 25: an orphan would make every later request fail; the mending is logged."""
    history = (
        user(),
        Message(id="o", role="tool", content="left over", tool_call_id="gone"),
        Message(id="a", role="assistant", tool_calls=(ToolCall("c1", "weather"), ToolCall("c2", "weather"))),
        Message(id="r", role="tool", content="sunny", tool_call_id="c2"),
        user("And now?", 1),
        Message(id="e", role="assistant", content=""),
        user("Well?", 2),
    )
    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url), request(*history, tools=(WEATHER,), chat_id="c"))
        sent = server.requests[0].json["messages"]
    assert outcome.error is None
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert [message["tool_call_id"] for message in sent[2:4]] == ["c1", "c2"]
    assert "Interrupted" in sent[2]["content"]
    assert "request repaired before sending" in caplog.text


async def test_parameters_headers_and_limits_reach_the_endpoint(make_adapter: MakeAdapter) -> None:
    """Everything the configuration says about the request."""
    async with ChatServer() as server:
        adapter = make_adapter(
            server.url,
            parameters={"temperature": 0.2},
            headers={"X-Title": "nvim", "api-key": "${api_key}"},
            max_output_tokens=500,
            max_tokens_field="max_tokens",
            parallel_tool_calls=False,
        )
        assert (await collect(adapter, request(tools=(WEATHER,)))).error is None
        assert (await collect(adapter, request(max_output_tokens=30))).error is None
        first, second = (seen.json for seen in server.requests)
        headers = server.requests[0].headers
    assert (first["temperature"], first["max_tokens"], second["max_tokens"]) == (0.2, 500, 30)
    assert first["parallel_tool_calls"] is False
    assert first["stream_options"] == {"include_usage": True}
    assert first["tools"][0]["function"]["name"] == "weather"
    assert (headers["x-title"], headers["api-key"], headers["authorization"]) == ("nvim", KEY, f"Bearer {KEY}")


async def test_the_query_of_the_address_and_of_the_path_are_sent(make_adapter: MakeAdapter) -> None:
    """Azure wants `?api-version=…`; users put it where the address is."""
    async with ChatServer() as server:
        assert (await collect(make_adapter(f"{server.url}?api-version=1&flag="))).error is None
        assert (await collect(make_adapter(server.url, chat_path="/chat/completions?api-version=2"))).error is None
        assert [seen.query for seen in server.requests] == ["api-version=1&flag=", "api-version=2"]


async def test_an_endpoint_without_a_key_gets_no_authorization(
    make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the environment says about an OpenAI account is not sent to a local server."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.test")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Corp: hidden\nAuthorization: Bearer sk-custom")
    async with ChatServer(key="") as server:
        assert (await collect(make_adapter(server.url, key=""))).error is None
        headers = server.requests[0].headers
    assert "authorization" not in headers
    assert not {"openai-organization", "openai-project", "x-corp"} & set(headers)


async def test_a_missing_key_stops_before_anything_is_sent(make_adapter: MakeAdapter) -> None:
    """The reader's error reaches the user as it is."""

    def refuse(_: object) -> str:
        raise MissingKey("test: no API key: the environment variable TEST_KEY is not set.")

    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url, read_key=refuse))
        assert server.requests == []
    assert isinstance(outcome.error, MissingKey)


async def test_a_refused_key_is_read_again_for_the_next_request(make_adapter: MakeAdapter) -> None:
    """The user mends it and sends again, without restarting anything."""
    keys = ["sk-wrong", KEY]
    async with ChatServer() as server:
        adapter = make_adapter(server.url, read_key=lambda _: keys.pop(0))
        assert isinstance((await collect(adapter)).error, AuthenticationFailed)
        assert (await collect(adapter)).error is None
        assert (await collect(adapter)).error is None
    assert keys == []


async def test_a_reply_that_never_ends_is_ended(make_adapter: MakeAdapter) -> None:
    """Keep-alives reset the idle limit, not the limit of the whole request (lesson 18)."""
    times = iter([0.0])
    async with ChatServer([reply("Hello, world", gate=asyncio.Event(), gate_after=2)]) as server:
        adapter = make_adapter(server.url, clock=lambda: next(times, 61.0), timeout_s=60, max_retries=0)
        outcome = await collect(adapter)
    assert outcome.text in ("", "Hell")
    assert isinstance(outcome.error, StreamCut)
    assert "time limit" in str(outcome.error)


async def test_a_server_on_this_machine_needs_no_proxy(
    make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`HTTP_PROXY` of the environment does not know Ollama."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with ChatServer([reply("Hello")]) as server:
        assert (await collect(make_adapter(server.url))).text == "Hello"
        through = await collect(make_adapter(server.url, proxy="http://127.0.0.1:9", max_retries=0))
    assert isinstance(through.error, NetworkFailed)


async def test_one_connection_serves_a_whole_tool_loop(make_adapter: MakeAdapter) -> None:
    """A new TLS handshake per step would cost more than everything else here."""
    async with ChatServer(
        [reply("a"), reply("b", done=False), whole_reply("c"), failure(400, "no"), reply("d")]
    ) as server:
        adapter = make_adapter(server.url)
        for _ in range(5):
            await collect(adapter)
        assert len(server.requests) == 5
        assert server.connections == 1


async def test_models_are_listed_sorted(make_adapter: MakeAdapter) -> None:
    """For the picker; an endpoint without a list gives what is configured."""
    async with ChatServer(models=("b", "a")) as server:
        assert await make_adapter(server.url).list_models() == ["a", "b"]
        assert await make_adapter(server.url, models_path="/nothing", models=("m",)).list_models() == ["m"]


async def test_without_a_model_the_first_of_the_list_is_used(make_adapter: MakeAdapter) -> None:
    """A local server usually has one."""
    async with ChatServer(models=("llama3", "qwen")) as server:
        adapter = make_adapter(server.url)
        assert (await collect(adapter, request(model=""))).error is None
        assert server.requests[1].json["model"] == "llama3"
        assert adapter.default_model == "llama3"


async def test_the_key_is_nowhere_to_be_seen(
    make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lesson 44: no text, repr, log line or traceback holds it, also when the provider echoes it."""
    secret, header_secret = "planted-key-without-a-known-shape-31337", "planted-header-value-4711"
    url_secret = "planted-in-the-address-2718"
    caplog.set_level(logging.DEBUG)
    echo = f"bad key {secret} with {header_secret} at {url_secret}"
    event = b'data: {"error": {"message": "%s"}}\n\n' % echo.encode()
    script = [
        failure(400, echo),
        failure(429, echo),
        failure(500, echo),
        plain(event),
        reply("x", insert=event, insert_at=2),
        plain(f"<html><title>{secret}</title>".encode(), content_type="text/html"),
        reply("x", break_after=2),
        reply("ok"),
    ]
    seen: list[str] = []
    foreign: list[BaseException | None] = []
    async with ChatServer(script, key="", echo_key=True) as server:
        address = f"{server.url}?token={url_secret}"
        adapter = make_adapter(address, key=secret, max_retries=0, headers={"X-Extra": header_secret})
        for _ in range(8):
            try:
                async for event_seen in adapter.stream(request()):
                    seen.append(repr(event_seen))
            except Exception as error:
                seen.extend([str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))])
                foreign.extend([error.__cause__, error.__context__])
        seen.extend([repr(adapter), str(adapter)])
        assert server.requests[0].headers["x-extra"] == header_secret
        assert server.requests[0].query == f"token={url_secret}"
        assert len(server.requests) == 8
        assert all(received.headers["authorization"] == f"Bearer {secret}" for received in server.requests)
    async with ChatServer(echo_key=True) as server:
        outcome = await collect(make_adapter(server.url, key=secret))
        seen.extend([str(outcome.error), repr(outcome.error)])
    everything = "\n".join([*seen, caplog.text, *(repr(record.__dict__) for record in caplog.records)])
    assert len(seen) > 20
    assert not any(foreign)
    # The echoes really came through, with the keys taken out.
    assert sum(text.count(f"bad key {HIDDEN} with {HIDDEN} at {HIDDEN}") for text in seen) >= 5
    assert secret not in everything
    assert header_secret not in everything
    assert url_secret not in everything


async def test_the_sdk_is_imported_off_the_loop_and_only_once(make_adapter: MakeAdapter) -> None:
    """Two requests at the same time share the client that is being made."""
    async with ChatServer() as server:
        adapter = make_adapter(server.url)
        await asyncio.gather(adapter.warm_up(), collect(adapter), collect(adapter))
        client = adapter._client
        await adapter.warm_up()
        assert adapter._client is client


def test_the_adapter_survives_a_new_event_loop() -> None:
    """The command line may run several loops one after the other."""

    async def once(adapter: OpenAIChat) -> str:
        outcome = await collect(adapter, request(user("hi")))
        await adapter.aclose()
        return outcome.text

    with ChatServerThread() as server:
        settings = AdapterSettings(name="t", kind="openai_compatible", base_url=server.url)
        adapter = OpenAIChat(settings, read_key=lambda _: KEY, read_blob=lambda _: b"")
        assert [asyncio.run(once(adapter)) for _ in range(2)] == ["You said: hi"] * 2


def test_ten_thousand_messages_are_rendered_once() -> None:
    """The next request of a chat renders only what is new; the bytes are the same as without the cache."""
    settings = AdapterSettings(name="t", kind="openai_compatible")
    renderer = ChatRenderer(settings, RenderOptions(), lambda _: b"")
    rendered: list[str] = []
    original = renderer._render_message
    renderer._render_message = lambda message: rendered.append(message.id) or original(message)  # type: ignore[method-assign, func-returns-value]
    messages = [user(f"message {number}", number) for number in range(10_000)]
    renderer.render(request(*messages, chat_id="c"))
    assert len(rendered) == 10_000
    rendered.clear()
    messages = [*messages[:10], *messages[11:], user("new", 10_000)]
    body = renderer.render(request(*messages, chat_id="c"))
    assert rendered == ["u10000"]
    fresh = ChatRenderer(settings, RenderOptions(), lambda _: b"").render(request(*messages))
    assert body == fresh
    assert len(json.loads(body)["messages"]) == 10_000
