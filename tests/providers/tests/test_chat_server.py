"""The loopback server refuses the requests that OpenAI refuses, so that tests against it are meaningful."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.providers.chat.answers import counted
from tests.providers.chat.rules import Extras, count_tokens, refusal_of
from tests.providers.chat.server import ChatServer
from tests.providers.loopback.answers import silence

ROOT = Path(__file__).parents[3]
USER = {"role": "user", "content": "hi"}
CALL = {"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}}
ASSISTANT = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "noon"}
TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), "stream": True, **fields}


def calling(**function: Any) -> dict[str, Any]:
    return {**ASSISTANT, "tool_calls": [{**CALL, "function": function}]}


def refused(request: Any, window: int = 0) -> str | None:
    refusal = refusal_of(request, models=("m",), window=window)
    return refusal.message if refusal else None


@pytest.mark.parametrize(
    "request_body",
    [
        body(USER),
        body({"role": "system", "content": "s"}, USER, ASSISTANT, RESULT, USER, tools=[TOOL], parallel_tool_calls=True),
        body(USER, stream_options={"include_usage": True}, max_completion_tokens=5, temperature=0.1),
        body({"role": "user", "content": [{"type": "text", "text": "x"}]}),
        body({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}),
    ],
)
def test_a_proper_request_is_accepted(request_body: dict[str, Any]) -> None:
    """Otherwise the refusals below prove nothing."""
    assert refused(request_body) is None


@pytest.mark.parametrize(
    ("request_body", "words"),
    [
        ([], "could not parse"),
        (body(USER, foo=1), "Unrecognized request argument supplied: foo"),
        ({"messages": [USER]}, "Missing required parameter: 'model'"),
        ({**body(USER), "model": "x"}, "does not exist"),
        ({**body(USER), "model": 5}, "Invalid type for 'model'"),
        (body(), "empty array"),
        (body({"role": "llm", "content": "x"}), "Invalid value: 'llm'"),
        (body({**USER, "cycle": 1}), "Unknown parameter: 'messages[0].cycle'"),
        (body({"role": "assistant", "content": "x", "reasoning_content": "y"}), "Unknown parameter"),
        (body({"role": "user", "content": ""}), "non-empty"),
        (body({"role": "user", "content": None}), "Invalid type for 'messages[0].content'"),
        (body({"role": "user", "content": [{"type": "text", "text": ""}]}), "Content blocks"),
        (body({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a.png"}}]}), "Content blocks"),
        (body({"role": "assistant", "content": None}), "Invalid type"),
        (body({"role": "assistant", "content": "x", "tool_calls": []}), "empty array"),
        (body(USER, RESULT), "must be a response to a preceeding message"),
        (body(USER, ASSISTANT), "did not have response messages: a"),
        (body(USER, ASSISTANT, USER, RESULT), "did not have response messages: a"),
        (body(USER, ASSISTANT, RESULT, RESULT), "must be a response to a preceeding message"),
        (body(USER, {**ASSISTANT, "tool_calls": [CALL, CALL]}, RESULT), "Duplicate value"),
        (
            body(USER, {**ASSISTANT, "tool_calls": [{**CALL, "index": 0}]}, RESULT),
            "Unknown parameter: 'messages[1].tool_calls[0].index'",
        ),
        (body(USER, {**ASSISTANT, "tool_calls": [{**CALL, "function": {"name": "a b", "arguments": ""}}]}), "pattern"),
        (
            body(USER, {**ASSISTANT, "tool_calls": [{**CALL, "function": {"name": "a", "arguments": {}}}]}),
            "Invalid type",
        ),
        (body(USER, tools=[]), "empty array"),
        (body(USER, tools=[{**TOOL, "function": {"name": "a"}}]), "schema must be a JSON Schema of"),
        (body(USER, parallel_tool_calls=True), "only allowed when 'tools'"),
        (body(USER, max_tokens=0), "below minimum"),
        (body(USER, max_tokens=1, max_completion_tokens=1), "not supported"),
        ({**body(USER), "stream": False, "stream_options": {}}, "only allowed when 'stream'"),
    ],
)
def test_an_improper_request_is_refused(request_body: Any, words: str) -> None:
    """Each refusal has OpenAI's wording."""
    message = refused(request_body)
    assert message is not None
    assert words in message


def test_a_request_over_the_window_is_refused_with_the_reply_counted() -> None:
    """The server's own count includes arguments, schemas and images."""
    request = body(USER, calling(name="now", arguments="word " * 200), RESULT)
    used = count_tokens(request)
    assert 200 < used < 230
    assert count_tokens({**request, "tools": [TOOL]}) > used
    assert refused(request, window=used) is None
    too_long = refused({**request, "max_tokens": 1}, window=used)
    assert too_long is not None
    assert "maximum context length" in too_long
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}
    assert count_tokens(body({"role": "user", "content": [picture]})) == count_tokens(body(USER)) + 84


@pytest.mark.parametrize(
    ("extras", "request_body"),
    [
        (Extras(arguments=("options",)), body(USER, options={"num_ctx": 4096})),
        (
            Extras(reasoning_fields=("reasoning_content",)),
            body(USER, {"role": "assistant", "content": "x", "reasoning_content": "y"}),
        ),
        (Extras(call_fields=("extra",)), body(USER, {**ASSISTANT, "tool_calls": [{**CALL, "extra": 1}]}, RESULT)),
    ],
)
def test_extensions_of_other_endpoints_are_opt_in(extras: Extras, request_body: dict[str, Any]) -> None:
    """Without the option, such a field is an unknown key."""
    refusal = refusal_of(request_body, models=("m",), window=0)
    assert refusal is not None
    assert refusal.code == "unknown_parameter"
    assert refusal_of(request_body, models=("m",), window=0, extras=extras) is None


@pytest.mark.parametrize(
    "request_body",
    [
        body({"role": "user", "content": [{"type": "text", "text": "x", "cited": 1}]}),
        body(USER, tools=[{**TOOL, "name": "now"}]),
        body(USER, temperature="hot"),
        body(USER, tool_choice="any"),
        body({"role": "user", "content": [5]}),
        body(USER, {**ASSISTANT, "tool_calls": [5]}),
        {"model": "m", "messages": {}},
        {"model": "m", "messages": [5]},
        body(USER, tools=[5]),
    ],
)
def test_fields_unknown_to_the_types_are_refused(request_body: Any) -> None:
    """This applies at any depth and with any value."""
    assert refused(request_body) is not None


async def test_a_counted_reply_reports_read_and_cached_tokens() -> None:
    """A repeated prefix is cached in steps of 128; with another key or ten minutes later it is not."""
    from openai import AsyncOpenAI

    async with ChatServer([counted("Hello")]) as server, AsyncOpenAI(base_url=server.url, api_key="sk-test") as client:

        async def usage(text: str, **fields: Any) -> Any:
            messages: Any = [{"role": "user", "content": text}]
            answer = await client.chat.completions.create(model="test-model", messages=messages, **fields)
            return answer.usage

        async def cached(text: str, **fields: Any) -> int:
            return (await usage(text, **fields)).prompt_tokens_details.cached_tokens  # type: ignore[no-any-return]

        start = "word " * 1400
        first = await usage(start)
        assert (first.prompt_tokens_details.cached_tokens, first.completion_tokens) == (0, 1)
        assert first.total_tokens == first.prompt_tokens + 1 > 1400
        assert await cached(start + "and so on") == 1280
        assert await cached(start, prompt_cache_key="k") == 0
        server.cache.now_s += 600
        assert await cached(start) == 0
        streamed: Any = await client.chat.completions.create(
            model="test-model",
            messages=[{"role": "user", "content": start}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in streamed]
        assert chunks[-1].usage.prompt_tokens_details.cached_tokens == 1408
        plain: Any = await client.chat.completions.create(
            model="test-model", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        assert [chunk.usage async for chunk in plain if chunk.usage] == []


def test_it_runs_as_a_program_scripted_over_http() -> None:
    """This is for tests in another process: those with Neovim, and benchmarks."""
    command = [sys.executable, "-m", "tests.providers.chat.server", "--port", "0", "--key", ""]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "python")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())

            def post(path: str, value: Any) -> str:
                url = f"http://127.0.0.1:{port}{path}"
                data = json.dumps(value).encode() if value is not None else None
                with urllib.request.urlopen(urllib.request.Request(url, data), timeout=PATIENCE_S) as answer:
                    return str(answer.read().decode())

            script = [
                {"kind": "reply", "text": "scripted", "calls": [{"name": "now"}]},
                {"kind": "plain", "body": "raw"},
            ]
            assert json.loads(post("/control/script", script)) == {"ok": True}
            streamed = post("/v1/chat/completions", body(USER))
            assert '"content":"scri"' in streamed
            assert '"tool_calls"' in streamed
            assert post("/v1/chat/completions", body(USER)) == "raw"
            assert '"content":"You "' in post("/v1/chat/completions", body(USER))
            seen = json.loads(post("/control/requests", None))
            assert [request["body"]["messages"] for request in seen] == [[USER]] * 3
            post("/control/reset", {})
            assert json.loads(post("/control/requests", None)) == []
        finally:
            server.kill()


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_a_client_that_disconnects_is_noticed_in_any_way(reset: bool) -> None:
    """A reset reaches the reader as an error, not as an end."""
    async with ChatServer(models=("m",), default=lambda _: silence()) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        content = json.dumps(body(USER)).encode()
        head = (
            "POST /v1/chat/completions HTTP/1.1",
            "Authorization: Bearer sk-test",
            "Content-Type: application/json",
            f"Content-Length: {len(content)}",
        )
        writer.write("\r\n".join((*head, "", "")).encode() + content)
        await server.wait_until(lambda: bool(server.requests))
        if reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.close()
        await server.wait_until(lambda: server.requests[-1].aborted)
