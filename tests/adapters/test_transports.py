"""The same requests over httpx2 and through the official clients: identical bytes, identical events."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.registry import make_wire
from codecompanion.errors import NetworkFailed, NotConfigured
from tests.adapters.conftest import KEY, Outcome, collect, told, user
from tests.faults.faults import Answers, Call, Refuses, Says, Sends
from tests.faults.wires import WIRES, Wire, adapter_settings
from tests.providers.loopback.answers import silence
from tests.providers.loopback.server import LoopbackServer

TRANSPORTS = ("httpx2", "sdk")
FORMATS = ("chat", "responses", "messages")
_MADE_UP = re.compile(r"\b(?:rs|fc|msg|resp)_[0-9a-f]{32,}|gAAAA[\w=-]+")
"""Ids and encrypted contents of the fake Responses server."""
TEXT = "Hello, ünïcödé 🎉 world"
TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
ANSWERS: dict[str, tuple[Answers, ...]] = {
    "text": (Says(TEXT),),
    "thinking": (Says(TEXT, thinking="hm, let me see"),),
    "calls": (Says("I look.", calls=(Call("weather", '{"city": "Łódź"}', "call_1"), Call("weather", "{}", "call_2"))),),
    "rate limit": (Refuses(429, "Slow down", headers={"retry-after": "7"}), Says(TEXT)),
    "a wait that is too long": (Refuses(429, "Slow down", headers={"retry-after": "3600"}),),
    "overloaded": (Refuses(503, "Busy"), Refuses(500, "Oops"), Says(TEXT)),
    "overloaded for long": (Refuses(500, "Oops"),) * 4,
    "too long": (Refuses(400, TOO_LONG, code="context_length_exceeded"),),
    "key refused": (Refuses(401, "No such key sk-test"),),
    "no access": (Refuses(403, "Not for you"),),
    "no such model": (Refuses(404, "The model `x` does not exist", code="model_not_found"),),
    "conflict": (Refuses(409, "Try later"), Says(TEXT)),
    "slow": (Refuses(408, "Too slow"), Says(TEXT)),
    "web page": (Refuses(502, body=b"<html><title>Bad gateway</title></html>"),) * 4,
    "large refusal": (Refuses(400, body=b"x" * 3_000_000),),
    "redirect": (Refuses(302, "", headers={"location": "https://elsewhere.example/v1"}),),
    "error in the text": (Says(TEXT, error="The backend crashed"),),
    "cut before the text": (Says(TEXT, ends_at="before the first byte"),) * 2,
    "cut in the text": (Says(TEXT, ends_at="in the text"),),
    "quiet end in the text": (Says(TEXT, ends_at="in the text", quietly=True),),
    "login page": (Sends(b"<html><title>Log in</title></html>", content_type="text/html"),),
    "nothing": (Sends(b""),),
    "damaged gzip": (Sends(b"not gzip", headers={"content-encoding": "gzip"}),),
    "unknown encoding": (Sends(b"hm", headers={"content-encoding": "br"}),),
}


def make(wire: Wire, url: str, transport: str, waits: list[float], **fields: Any) -> HttpAdapter:
    """Return an adapter without waits."""

    async def no_wait(seconds: float) -> None:
        waits.append(seconds)

    settings = adapter_settings(wire, url, transport=transport, **fields)
    return HttpAdapter(
        settings, make_wire(settings, lambda _: b""), read_key=lambda _: KEY, sleep=no_wait, random=lambda: 0.5
    )


async def exchange(wire: Wire, answers: tuple[Answers, ...], transport: str) -> tuple[Any, ...]:
    """Return every observable result of one request: events, error, waits and bodies."""
    left, waits = list(answers), list[float]()
    server = wire.serve(lambda _: left.pop(0), 0)
    async with server:
        adapter = make(wire, server.url, transport, waits)
        outcome = await collect(adapter, ChatRequest(messages=(user(),), model=adapter.default_model))
        await adapter.aclose()
        port = str(server.port)
    events = _MADE_UP.sub("MADE_UP", str(told(outcome))).replace(port, "PORT")
    error = str(outcome.error).replace(port, "PORT") if outcome.error else ""
    details = {name: getattr(outcome.error, name, None) for name in ("status", "code", "retryable", "retry_after_s")}
    sent = [(request.method, request.path, request.query, request.body) for request in server.requests]
    return events, type(outcome.error), error, details, waits, sent


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("wire", FORMATS)
async def test_both_transports_yield_the_same(wire: Any, name: str) -> None:
    """Events, error messages, retries, waits and every byte of every body are identical."""
    over_httpx2, through_sdk = [await exchange(WIRES[wire], ANSWERS[name], transport) for transport in TRANSPORTS]
    assert over_httpx2[-1], "nothing was sent"
    assert through_sdk == over_httpx2


async def leave(server: LoopbackServer, adapter: HttpAdapter) -> None:
    """Cancel a request that the server has received, and wait until the server has noticed."""
    task = asyncio.ensure_future(collect(adapter, ChatRequest(messages=(user(),), model=adapter.default_model)))
    await server.wait_until(lambda: bool(server.requests))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.wait_until(lambda: server.requests[-1].aborted)


@pytest.mark.parametrize("silent_at", ["before the first byte", "in the text", None])
@pytest.mark.parametrize("wire", FORMATS)
async def test_cancelling_closes_the_connection_of_an_official_client(wire: Any, silent_at: Any) -> None:
    """The request is cancelled before the response head, before the first byte or during the text, and not resent."""
    given = Says(TEXT, silent_at=silent_at)
    server = WIRES[wire].serve(lambda _: given, 0)
    if silent_at is None:
        server.answer = lambda request: silence()  # type: ignore[method-assign]
    async with server:
        adapter = make(WIRES[wire], server.url, "sdk", [])
        await leave(server, adapter)
        await adapter.aclose()
    assert len(server.requests) == 1


@pytest.mark.parametrize("silent_at", ["before the first byte", "in the text"])
async def test_the_limits_on_silence_are_the_same(silent_at: Any) -> None:
    """The client's own time limits do not apply."""
    outcomes: list[Outcome] = []
    for transport in TRANSPORTS:
        server = WIRES["messages"].serve(lambda _: Says(TEXT, silent_at=silent_at), 0)
        async with server:
            adapter = make(WIRES["messages"], server.url, transport, [], idle_timeout_s=0.3)
            outcomes.append(await collect(adapter, ChatRequest(messages=(user(),), model=adapter.default_model)))
            await adapter.aclose()
        assert len(server.requests) == 1
    first, second = outcomes
    assert first.error is not None
    assert (type(second.error), str(second.error)) == (type(first.error), str(first.error))
    assert told(second) == told(first)


@pytest.mark.parametrize("wire", FORMATS)
async def test_a_closed_port_is_a_failed_connection(wire: Any) -> None:
    """The request is retried as often as configured, and the error has our wording."""
    waits: list[float] = []
    adapter = make(WIRES[wire], "http://127.0.0.1:9/v1", "sdk", waits, max_retries=2)
    outcome = await collect(adapter, ChatRequest(messages=(user(),), model=adapter.default_model))
    await adapter.aclose()
    assert type(outcome.error) is NetworkFailed
    assert "no connection to http://127.0.0.1:9/v1 (connection refused)" in str(outcome.error)
    assert len(waits) == 2


WITHOUT = """
import asyncio, sys
from importlib.abc import MetaPathFinder
from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.registry import make_wire
from codecompanion.model.messages import Message

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ("openai", "anthropic"):
            raise ModuleNotFoundError(f"No module named {name!r}")

if sys.argv[1] == "missing":
    sys.meta_path.insert(0, Missing())
settings = AdapterSettings(
    name="x", kind=sys.argv[2], base_url="http://127.0.0.1:9/v1", transport=sys.argv[3], max_retries=0
)
adapter = HttpAdapter(settings, make_wire(settings, lambda _: b""), read_key=lambda _: "")

async def ask():
    try:
        await adapter.warm_up()
    except Exception as error:
        print("warm-up:", type(error).__name__, error)
    try:
        message = Message(id="u", role="user", content="Hi")
        async for event in adapter.stream(ChatRequest(messages=(message,), model="m")):
            pass
    except Exception as error:
        print(type(error).__name__, error)
    sdks = {"openai", "anthropic", "boto3", "botocore", "google", "azure"}
    print(*sorted(sdks & {name.partition(".")[0] for name in sys.modules}))

asyncio.run(ask())
"""


def run_without(*arguments: str) -> list[str]:
    """Return the output of a separate process that makes one request."""
    command = [sys.executable, "-c", WITHOUT, *arguments]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("kind", ["openai", "openai_responses", "anthropic"])
def test_a_missing_extra_is_one_sentence_with_its_remedy(kind: str) -> None:
    """Nothing was sent; the chat continues with another adapter."""
    early, said, imported = run_without("missing", kind, "sdk")
    sentence = 'x: transport = "sdk" needs packages that are not installed. Run :CodeCompanion install sdk.'
    assert said == f"{NotConfigured.__name__} {sentence}"
    assert early == f"warm-up: {said}"
    assert imported == ""


@pytest.mark.parametrize(
    ("kind", "transport", "imported"),
    [
        ("openai", "httpx2", ""),
        ("anthropic", "httpx2", ""),
        ("openai", "sdk", "openai"),
        ("anthropic", "sdk", "anthropic"),
    ],
)
def test_only_the_client_in_use_is_imported(kind: str, transport: str, imported: str) -> None:
    """Neither the other client nor a cloud library is imported."""
    assert run_without("installed", kind, transport)[-1] == imported


def test_an_entry_over_httpx2_does_not_need_the_sdks() -> None:
    """The settings use httpx2 unless the user chooses otherwise."""
    assert AdapterSettings(name="x", kind="openai").transport == "httpx2"
