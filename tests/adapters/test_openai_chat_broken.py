"""Broken, truncated or invalid replies: never complete, and no received text is lost (lesson 39)."""

from __future__ import annotations

import pytest

from codecompanion.errors import (
    MalformedReply,
    RequestRejected,
    StreamCut,
)
from tests.adapters.conftest import MakeAdapter, collect
from tests.providers.chat.answers import CLOSE, DROP, Answer, plain, reply
from tests.providers.chat.server import ChatServer


async def test_a_web_page_instead_of_a_reply_is_reported(make_adapter: MakeAdapter) -> None:
    """A proxy's login page with status 200 is an error."""
    page = b"<!doctype html><html><head><title>Sign in to Corp</title></head></html>"
    async with ChatServer([plain(page, content_type="text/html; charset=utf-8")]) as server:
        outcome = await collect(make_adapter(server.url))
    assert isinstance(outcome.error, MalformedReply)
    assert "text/html" in str(outcome.error)
    assert "Sign in to Corp" in str(outcome.error)
    assert "env.url" in str(outcome.error)


async def test_json_that_is_not_a_reply_is_reported(make_adapter: MakeAdapter) -> None:
    """A health page with status 200 must not pass as an empty answer."""
    async with ChatServer([plain(b'{"status": "ok"}', content_type="application/json")]) as server:
        outcome = await collect(make_adapter(server.url, max_retries=0))
    assert isinstance(outcome.error, StreamCut | MalformedReply)


@pytest.mark.parametrize("status", [200, 400])
async def test_an_error_object_with_any_status_is_an_error(make_adapter: MakeAdapter, status: int) -> None:
    """Gateways may send an error object with status 200."""
    body = b'{"error": {"message": "Unknown field: foo", "code": "bad_request"}}'
    async with ChatServer([plain(body, content_type="application/json", status=status)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert isinstance(outcome.error, RequestRejected)
    assert "Unknown field: foo." in str(outcome.error)


@pytest.mark.parametrize("break_with", [DROP, CLOSE])
async def test_a_dropped_connection_keeps_the_received_text(make_adapter: MakeAdapter, break_with: str) -> None:
    """Lesson 39: a stream that ends before its end marker is not a complete answer."""
    async with ChatServer([reply("Hello, world", break_after=3, break_with=break_with)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.text == "Hello, w"
    assert isinstance(outcome.error, StreamCut)
    assert outcome.retries == []


async def test_a_body_that_ends_without_a_finish_reason_is_truncated(make_adapter: MakeAdapter) -> None:
    """Lesson 39: a proxy ends the HTTP body properly even if its upstream breaks. `[DONE]` counts as an end marker."""
    half = reply("Hello", finish="stop").parts[:2]
    ends = [half, half]
    async with ChatServer([Answer(parts=tuple(parts)) for parts in ends]) as server:
        adapter = make_adapter(server.url)
        for _ in ends:
            outcome = await collect(adapter)
            assert outcome.text == "Hell"
            assert isinstance(outcome.error, StreamCut)


async def test_an_error_during_a_stream_is_reported(make_adapter: MakeAdapter) -> None:
    """Lesson 39: the HTTP connection ends cleanly, but the reply is incomplete."""
    event = b'data: {"error": {"message": "The server had an error", "type": "server_error"}}\n\n'
    async with ChatServer([reply("Hello", insert=event, insert_at=2)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.text == "Hell"
    assert isinstance(outcome.error, StreamCut)
    assert "The server had an error." in str(outcome.error)


async def test_an_error_at_the_start_of_a_stream_is_retried(make_adapter: MakeAdapter) -> None:
    """An overloaded provider may answer 200 followed by the error; nothing has been shown at that point."""
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
    """The text received before it is kept."""
    async with ChatServer([reply("Hello", insert=garbage, insert_at=2)]) as server:
        outcome = await collect(make_adapter(server.url))
    assert outcome.text == "Hell"
    assert isinstance(outcome.error, MalformedReply)


async def test_ollamas_native_format_is_recognised(make_adapter: MakeAdapter) -> None:
    """The error names the setting to change."""
    line = b'{"model":"llama3","message":{"role":"assistant","content":"Hi"},"done":false}\n'
    async with ChatServer([plain(line, content_type="application/x-ndjson")]) as server:
        outcome = await collect(make_adapter(server.url))
    assert isinstance(outcome.error, MalformedReply)
    assert "/v1" in str(outcome.error)
