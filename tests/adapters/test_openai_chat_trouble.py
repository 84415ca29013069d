"""Tests of refusals, retries, time limits and cancellation."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from codecompanion.adapters.base import RetryScheduled
from codecompanion.adapters.http import connection as connection_module
from codecompanion.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelNotFound,
    NetworkFailed,
    Overloaded,
    RateLimited,
    RequestRejected,
    StreamCut,
)
from codecompanion.formats.byte_limits import ByteLimits
from tests.adapters.conftest import KEY, MakeAdapter, collect, request, user
from tests.patience import PATIENCE_S
from tests.providers.chat.answers import Answer, failure, plain, reply, silence
from tests.providers.chat.server import ChatServer


async def test_a_rate_limit_is_waited_out_visibly(make_adapter: MakeAdapter) -> None:
    """Lesson 38: the retry and its wait are visible."""
    waits: list[float] = []
    limited = failure(429, "Slow down", code="rate_limit_exceeded", headers={"Retry-After": "7"})
    async with ChatServer([limited, reply("Hello")]) as server:
        outcome = await collect(make_adapter(server.url, waits=waits))
        assert len(server.requests) == 2
        assert server.requests[0].body == server.requests[1].body
    assert outcome.text == "Hello"
    assert waits == [7.0]
    assert outcome.events[0] == RetryScheduled(outcome.retries[0].reason, 1, 7000, "too many requests")
    assert outcome.retries[0].reason.startswith("test: too many requests (429). The provider says: Slow down.")


async def test_the_wait_grows_and_ends(make_adapter: MakeAdapter) -> None:
    """After `max_retries` retries, the error itself is reported."""
    waits: list[float] = []
    async with ChatServer([failure(500, "Oops")] * 4) as server:
        outcome = await collect(make_adapter(server.url, waits=waits, max_retries=3))
        assert len(server.requests) == 4
    assert waits == [0.5, 1.0, 2.0]
    assert isinstance(outcome.error, Overloaded)
    assert str(outcome.error) == "test: the provider failed (500). The provider says: Oops."


async def test_a_long_requested_wait_is_not_followed(make_adapter: MakeAdapter) -> None:
    """The error reports the requested wait, so that the user can decide."""
    limited = failure(429, "Daily limit", headers={"Retry-After": "3600"})
    async with ChatServer([limited]) as server:
        outcome = await collect(make_adapter(server.url))
    assert isinstance(outcome.error, RateLimited)
    assert outcome.error.retry_after_s == 3600
    assert "Try again in 3600 s." in str(outcome.error)
    assert outcome.retries == []


async def test_an_empty_account_is_not_retried(make_adapter: MakeAdapter) -> None:
    """`insufficient_quota` is a 429 that waiting does not fix."""
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
        await asyncio.wait_for(asleep.wait(), PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(server.requests) == 1


async def test_cancelling_ends_the_http_request(make_adapter: MakeAdapter) -> None:
    """The server sees the client disconnect, while streaming and before the first byte (lesson 41)."""
    for answer in (reply("Hello", gate=asyncio.Event(), gate_after=2), silence()):
        async with ChatServer([answer]) as server:
            task = asyncio.ensure_future(collect(make_adapter(server.url)))
            await server.wait_until(lambda: bool(server.requests))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.wait_until(lambda: server.requests[0].aborted)


async def test_a_consumer_that_stops_early_ends_the_http_request(make_adapter: MakeAdapter) -> None:
    """Consumers wrap the stream in `aclosing`, and leaving it closes the request."""
    async with ChatServer([reply("Hello", gate=asyncio.Event(), gate_after=2)]) as server:
        async with aclosing(make_adapter(server.url).stream(request())) as events:
            async for _ in events:
                break
        await server.wait_until(lambda: server.requests[0].aborted)


async def test_silence_between_chunks_ends_the_reply(make_adapter: MakeAdapter) -> None:
    """The idle limit applies between chunks; received text is kept."""
    async with ChatServer([reply("Hello", gate=asyncio.Event(), gate_after=2)]) as server:
        outcome = await collect(make_adapter(server.url, idle_timeout_s=1.0, max_retries=0))
    assert outcome.text == "Hell"
    assert isinstance(outcome.error, StreamCut)
    assert "sent nothing for 1 s" in str(outcome.error)


async def test_silence_before_the_first_byte_is_reported_and_not_retried(make_adapter: MakeAdapter) -> None:
    """The endpoint may still be working and would bill each attempt, so the user decides."""
    async with ChatServer([silence(), reply("Hello")]) as server:
        outcome = await collect(make_adapter(server.url, idle_timeout_s=1.0))
        assert len(server.requests) == 1
    assert type(outcome.error) is NetworkFailed
    assert "sent nothing for 1 s (opts.idle_timeout)" in str(outcome.error)


async def test_a_streaming_reply_has_no_limit(make_adapter: MakeAdapter) -> None:
    """A reply may take any time; only a configured limit ends it."""
    times = iter(float(hour) * 3_600 for hour in range(1_000))
    async with ChatServer([reply("Hello, world")]) as server:
        outcome = await collect(make_adapter(server.url, clock=lambda: next(times), max_retries=0))
    assert outcome.text == "Hello, world"


async def test_a_slow_reply_is_accepted(make_adapter: MakeAdapter) -> None:
    """Pauses shorter than the idle limit are harmless."""
    async with ChatServer([reply("Hello", delay_s=0.01)]) as server:
        assert (await collect(make_adapter(server.url, idle_timeout_s=20.0))).text == "Hello"


async def test_an_unreachable_server_is_one_sentence(make_adapter: MakeAdapter) -> None:
    """The error names the URL and the things to check."""
    async with ChatServer() as server:
        url = server.url
    outcome = await collect(make_adapter(url, max_retries=1))
    assert isinstance(outcome.error, NetworkFailed)
    assert f"no connection to {url}" in str(outcome.error)
    assert len(outcome.retries) == 1


async def test_a_refused_key_names_its_source(make_adapter: MakeAdapter) -> None:
    """The error has the specified wording: the key's source and the remedy."""
    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url, key="sk-wrong-key-0123456789"))
    assert isinstance(outcome.error, AuthenticationFailed)
    expected = "test: the key in TEST_KEY was refused (401). Check it, or choose another adapter with ga."
    assert str(outcome.error) == expected


async def test_an_unknown_model_is_named(make_adapter: MakeAdapter) -> None:
    """A 404 with an error code counts as an unknown model."""
    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url), request(model="gpt-99"))
    assert isinstance(outcome.error, ModelNotFound)
    assert "gpt-99" in str(outcome.error)


async def test_a_wrong_path_is_not_mistaken_for_an_unknown_model(make_adapter: MakeAdapter) -> None:
    """A URL without /v1 answers 404 too; the error names the URL settings."""
    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url.removesuffix("/v1")))
    assert isinstance(outcome.error, RequestRejected)
    assert "Check env.url and env.chat_url." in str(outcome.error)


async def test_a_request_over_the_window_is_an_overflow(make_adapter: MakeAdapter) -> None:
    """R-535: the session recovers from this class."""
    async with ChatServer(window=50) as server:
        outcome = await collect(make_adapter(server.url), request(user("x" * 1000)))
    assert isinstance(outcome.error, ContextOverflow)
    assert outcome.retries == []


async def test_a_redirect_is_reported_instead_of_followed(make_adapter: MakeAdapter) -> None:
    """Following it would send the user's headers to another host."""
    headers = {"Location": "https://other.test/v1/chat/completions?token=abc"}
    async with ChatServer([plain(b"", status=308, headers=headers, content_type="text/plain")]) as server:
        outcome = await collect(make_adapter(server.url))
    assert isinstance(outcome.error, RequestRejected)
    assert "https://other.test/v1/chat/completions" in str(outcome.error)
    assert "token" not in str(outcome.error)


async def test_a_refused_key_is_read_again_for_the_next_request(make_adapter: MakeAdapter) -> None:
    """The user fixes it and sends again, without restarting anything."""
    keys = ["sk-wrong", KEY]
    async with ChatServer() as server:
        adapter = make_adapter(server.url, read_key=lambda _: keys.pop(0))
        assert isinstance((await collect(adapter)).error, AuthenticationFailed)
        assert (await collect(adapter)).error is None
        assert (await collect(adapter)).error is None
    assert keys == []


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
async def test_a_reply_without_end_is_stopped(
    make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """An endless reply must not fill the memory, whatever its content."""
    small = ByteLimits(what="the reply", wire_bytes=1_000_000, decoded_bytes=1_000_000)
    monkeypatch.setattr(connection_module, "REPLY", small)
    start = b"data: " if kind == "text/event-stream" else b'{"a": "'
    async with ChatServer([Answer(content_type=kind, parts=(start, *((b"a" * 100_000,) * 500)))]) as server:
        outcome = await collect(make_adapter(server.url, max_retries=0))
    assert isinstance(outcome.error, StreamCut)
    assert "larger than 1 MB" in str(outcome.error)


async def test_endless_keep_alives_are_stopped(make_adapter: MakeAdapter) -> None:
    """Keep-alives reset the idle limit, not the limit of the whole request (lesson 18)."""
    times = iter([0.0])
    async with ChatServer([reply("Hello, world", gate=asyncio.Event(), gate_after=2)]) as server:
        adapter = make_adapter(server.url, clock=lambda: next(times, 61.0), timeout_s=60, max_retries=0)
        outcome = await collect(adapter)
    assert outcome.text in ("", "Hell")
    assert isinstance(outcome.error, StreamCut)
    assert "time limit" in str(outcome.error)
