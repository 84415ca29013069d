"""The official SDK against the fake Responses server; the simulation behaves as described in the provider's guides."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.providers.responses.answers import (
    CLOSE,
    END,
    Call,
    Reply,
    quota_exhausted,
    rate_limited,
    reply,
    server_error,
    silence,
)
from tests.providers.responses.rules import Rules
from tests.providers.responses.server import ResponsesServer, ResponsesServerThread
from tests.providers.tests.responses.sdk import ENCRYPTED, SMALL, collect, create, open_client, sent_back

ROOT = Path(__file__).parents[4]
TOOL = {"type": "function", "name": "now", "parameters": {"type": "object", "properties": {}}, "strict": False}


@pytest.fixture
async def server() -> AsyncIterator[ResponsesServer]:
    async with ResponsesServer(rules=SMALL) as running:
        yield running


@pytest.fixture
async def client(server: ResponsesServer) -> AsyncIterator[Any]:
    async with open_client(server) as opened:
        yield opened


async def test_a_stream_has_the_provider_s_events_in_order(server: ResponsesServer, client: Any) -> None:
    """Reasoning, text and call are each begun, filled and completed, one after the other, with sequence numbers."""
    server.script = [reply("Hello you", reasoning=("**Plan**", "Do it"), calls=[Call("now", '{"a":1}')])]
    events = await collect(client, include=ENCRYPTED, tools=[TOOL])
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type.removeprefix("response.") for event in events]
    summary = ["reasoning_summary_part.added", *["reasoning_summary_text.delta"] * 2]
    assert kinds == [
        *("created", "in_progress", "output_item.added"),
        *(*summary, "reasoning_summary_text.done", "reasoning_summary_part.done"),
        *(*summary, "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"),
        *("output_item.added", "content_part.added", *["output_text.delta"] * 3, "output_text.done"),
        *("content_part.done", "output_item.done", "output_item.added", *["function_call_arguments.delta"] * 2),
        *("function_call_arguments.done", "output_item.done", "completed"),
    ]
    final = events[-1].response
    assert final.output_text == "Hello you"
    assert [part.text for part in final.output[0].summary] == ["**Plan**", "Do it"]
    assert (final.output[2].name, final.output[2].arguments) == ("now", '{"a":1}')
    assert [item.id.partition("_")[0] for item in final.output] == ["rs", "msg", "fc"]
    assert server.notes == []


async def test_a_reply_can_be_sent_back_from_each_event_but_the_first(server: ResponsesServer, client: Any) -> None:
    """The encrypted content in `added` belongs to an item that was not complete yet."""
    from openai import BadRequestError

    server.script = [reply(reasoning=("Why",), calls=[Call("now")])]
    events = await collect(client, include=ENCRYPTED, tools=[TOOL])

    async def go_on(items: list[Any]) -> Any:
        output = {"type": "function_call_output", "call_id": items[1]["call_id"], "output": "noon"}
        return await create(client, [{"role": "user", "content": "hi"}, *items, output], include=ENCRYPTED)

    done = [event.item.model_dump(exclude_none=True) for event in events if event.type == "response.output_item.done"]
    added = [event.item.model_dump(exclude_none=True) for event in events if event.type == "response.output_item.added"]
    assert (await go_on(done)).output_text == "You said: hi"
    assert (await go_on(sent_back(events[-1].response))).output_text == "You said: hi"
    with pytest.raises(BadRequestError, match="could not be verified"):
        await go_on([{**done[0], "encrypted_content": added[0]["encrypted_content"]}, done[1]])


async def test_non_streamed_answers_are_the_same_response(server: ResponsesServer, client: Any) -> None:
    """Without `stream`, encrypted reasoning is included only on request."""
    server.script = [reply("Hello", reasoning=("Why",)), reply("Hello", reasoning=("Why",))]
    plain = await create(client)
    assert plain.output_text == "Hello"
    assert plain.output[0].encrypted_content is None
    assert (await create(client, include=ENCRYPTED)).output[0].encrypted_content.startswith("gAAAA")


async def test_a_reply_can_be_mixed_refused_incomplete_or_failed(server: ResponsesServer, client: Any) -> None:
    """Each has the events and fields of its kind."""
    server.script = [
        Reply((Call("a", '{"x":1}', "call_a"), Call("b", '{"y":2}', "call_b")), interleaved=True),
        reply(refusal="I will not."),
        reply("cut", incomplete="max_output_tokens"),
        reply("half", error_code="server_error", error_message="Sorry"),
        reply("half", error_code="rate_limit_exceeded", as_event=True, after=3),
    ]
    mixed = await collect(client, tools=[TOOL])
    assert [event.output_index for event in mixed if "delta" in event.type] == [0, 1, 0, 1]
    declined = await collect(client)
    assert "response.refusal.done" in [event.type for event in declined]
    assert declined[-1].response.output[0].content[0].refusal == "I will not."
    cut = (await collect(client))[-1]
    assert cut.type == "response.incomplete"
    assert cut.response.incomplete_details.reason == "max_output_tokens"
    assert cut.response.output[0].status == "incomplete"
    failed = (await collect(client))[-1]
    assert (failed.type, failed.response.error.code, failed.response.usage) == ("response.failed", "server_error", None)
    error = await collect(client)
    assert [event.type for event in error[2:]] == ["response.output_item.added", "error"]
    assert (error[-1].code, error[-1].sequence_number) == ("rate_limit_exceeded", 3)


async def test_a_long_prompt_is_refused_before_or_in_the_stream() -> None:
    """The provider does both; the error inside a stream is nested."""
    from openai import APIError, BadRequestError

    for in_stream, kind in ((False, BadRequestError), (True, APIError)):
        async with (
            ResponsesServer(rules=SMALL, overflow_in_stream=in_stream) as server,
            open_client(server) as client,
        ):
            with pytest.raises(kind) as caught:
                await collect(client, "word " * 5000)
            assert caught.value.code == "context_length_exceeded"
            assert server.refusals[0].code == "context_length_exceeded"


async def test_http_errors_equal_the_providers(server: ResponsesServer, client: Any) -> None:
    """They have the same status, code and headers."""
    import openai

    server.script = [rate_limited(retry_after_ms=1500), quota_exhausted(), server_error(), server_error(503)]
    seen = []
    for _ in range(4):
        with pytest.raises(openai.APIStatusError) as caught:
            await create(client)
        seen.append((caught.value.status_code, caught.value.code, caught.value.response.headers.get("retry-after-ms")))
    assert seen == [
        (429, "rate_limit_exceeded", "1500"),
        (429, "insufficient_quota", None),
        (500, "server_error", None),
        (503, None, None),
    ]
    async with open_client(server, key="sk-wrong") as stranger:
        with pytest.raises(openai.AuthenticationError, match=r"sk-\*\*\*\*") as denied:
            await stranger.models.list()
        assert denied.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError, match="Invalid URL"):
        await client.chat.completions.create(model="test-model", messages=[])


async def test_a_body_that_is_too_large_is_refused_by_the_proxy() -> None:
    """Without JSON."""
    import openai

    async with ResponsesServer(body_limit=1000) as server, open_client(server) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await create(client, "x" * 1000)
        assert caught.value.status_code == 413
        assert (await create(client, "x" * 500)).output_text.startswith("You said")


async def test_a_server_without_checks_refuses_nothing() -> None:
    """Nothing is counted either; this is for benchmarks with large histories."""
    async with ResponsesServer([reply("b")], check=False) as lax, open_client(lax) as other:
        wrong: Any = [{"type": "function_call_output", "call_id": "call_1", "output": "x" * 100_000}]
        response = await create(other, wrong)
        assert (response.output_text, response.usage.input_tokens) == ("b", 0)


def test_an_invalid_request_is_refused() -> None:
    """The method, path, content type and JSON are checked."""

    def status(method: str, path: str, data: bytes | None = None, kind: str = "application/json") -> int:
        headers = {"Content-Type": kind, "Authorization": "Bearer sk-test"}
        request = urllib.request.Request(running.url + path, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    body = json.dumps({"model": "test-model", "input": "hi"}).encode()
    with ResponsesServerThread() as running:
        assert status("POST", "/responses", body) == 200
        assert status("GET", "/responses") == 405
        assert status("POST", "/respond", body) == 404
        assert status("POST", "/responses", body, "text/plain") == 400
        assert status("POST", "/responses", body[:-1]) == 400
        assert [refusal.status for refusal in running.refusals] == [405, 404, 400, 400]


async def test_the_shared_server_has_the_provider_s_limits(responses_server: ResponsesServer) -> None:
    """Thresholds below 50,000 are refused; a typical body of the fixture's users is answered."""
    from openai import BadRequestError

    async with open_client(responses_server) as client:
        low: Any = {"context_management": [{"type": "compaction", "compact_threshold": 2000}]}
        with pytest.raises(BadRequestError, match="Expected a value >= 50000, but got 2000 instead"):
            await create(client, **low)
        assert (await create(client)).output_text == "You said: hi"


async def test_models_are_listed_and_found(client: Any) -> None:
    """An unknown model is not found."""
    from openai import NotFoundError

    assert [model.id async for model in client.models.list()] == ["test-model"]
    assert (await client.models.retrieve("test-model")).object == "model"
    with pytest.raises(NotFoundError):
        await client.models.retrieve("other")


async def test_a_stream_can_end_after_any_event_or_byte(server: ResponsesServer, client: Any) -> None:
    """This includes ends after which the HTTP body looks complete."""
    from openai import APIConnectionError

    server.script = [
        reply("Hello", break_after=4, break_with=END),
        reply("Hello", break_at_byte=30, break_with=END),
        reply("Hello", break_after=4, break_with=CLOSE),
        reply("Hello", break_at_byte=30, break_with=CLOSE),
    ]
    assert len(await collect(client)) == 4
    assert await collect(client) == []
    for count in (4, 0):
        stream = aiter(await create(client, stream=True))
        for _ in range(count):
            await anext(stream)
        with pytest.raises(APIConnectionError):
            await anext(stream)


async def test_a_gate_blocks_the_stream_until_it_is_opened(server: ResponsesServer, client: Any) -> None:
    """Delays are events instead of sleeps; the server notices a client that disconnects."""
    gate = asyncio.Event()
    server.script = [reply("Hello", gate=gate, gate_after=2), silence()]
    stream = aiter(await create(client, stream=True))
    assert [(await anext(stream)).type for _ in range(2)] == ["response.created", "response.in_progress"]
    rest = asyncio.ensure_future(anext(stream))
    assert not rest.done()
    server.release(gate)
    assert (await rest).type == "response.output_item.added"
    assert [event.type async for event in stream][-1] == "response.completed"
    waiting = asyncio.ensure_future(create(client))
    await server.wait_until(lambda: len(server.requests) == 2)
    waiting.cancel()
    await server.wait_until(lambda: server.requests[1].aborted)


def test_it_runs_in_a_thread_and_as_a_program_scripted_over_http() -> None:
    """The program is for tests in another process: those with Neovim, and benchmarks."""
    command = [sys.executable, "-m", "tests.providers.responses.server", "--port", "0", "--key", ""]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "python")])}

    def post(port: int, path: str, value: Any) -> str:
        data = json.dumps(value).encode() if value is not None else None
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            return str(answer.read().decode())

    body = {"model": "any", "input": "hi", "store": False, "stream": True}
    with ResponsesServerThread([reply("from a thread")], key="", rules=Rules()) as server:
        assert '"delta":"from"' in post(server.port, "/v1/responses", body)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            items = [{"type": "reasoning", "summary": ["Why"]}, {"type": "call", "name": "now"}]
            script = [{"items": items}, {"kind": "plain", "body": "raw"}]
            assert json.loads(post(port, "/control/script", script)) == {"ok": True}
            assert "response.function_call_arguments.done" in post(port, "/v1/responses", body)
            assert post(port, "/v1/responses", body) == "raw"
            compactions = [{"items": [{"type": "compaction", "tokens": 7}]}]
            assert json.loads(post(port, "/control/compactions", compactions)) == {"ok": True}
            assert '"output_tokens": 7' in post(port, "/v1/responses/compact", {"model": "any", "input": "hi"})
            assert json.loads(post(port, "/control/clock", {"seconds": 60})) == {"ok": True}
            seen = json.loads(post(port, "/control/requests", None))
            assert [entry["path"] for entry in seen] == ["/v1/responses", "/v1/responses", "/v1/responses/compact"]
            post(port, "/control/reset", {})
            assert json.loads(post(port, "/control/requests", None)) == []
        finally:
            process.kill()
