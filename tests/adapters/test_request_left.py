"""Tests of every point where a connection can fail: only the user repeats a request that the server received in full.

"The request left us" is one fact for all wire formats and both transports. Each row counts the requests that the server
received in full, which it bills, and checks the error message.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from codecompanion.adapters.base import ChatRequest
from codecompanion.adapters.transport import client
from codecompanion.errors import AdapterError, NetworkFailed, StreamCut
from tests.adapters.conftest import Outcome, collect, user
from tests.adapters.test_transports import make
from tests.faults.faults import Says
from tests.faults.wires import WIRES
from tests.providers.loopback.faulty_server import Fault, FaultyServer

FORMATS = ("chat", "responses", "messages")
HOW = ("reset", "close", "silence")
TEXT = "Hello, world"
BILLED = "The request may have been processed and billed."
LOST = f"the connection ended before the reply began. {BILLED}"
SILENT = "the provider sent nothing for 0.2 s (opts.idle_timeout)."
END_MARKS = {"chat": b'"finish_reason":"stop"', "responses": b"response.completed", "messages": b"message_delta"}
LARGE = "x" * 200_000
"""Larger than the buffers at both ends of a connection, which these tests make small."""
SMALL_BUFFER = [(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)]
REFUSED = b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nBusy"
_recorded: dict[str, bytes] = {}


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the limits, so that silence is detected quickly."""
    monkeypatch.setattr(client, "_SENDING_LIMIT_S", 0.3)
    monkeypatch.setattr(client, "_SLOWEST_UPLOAD", 10**9)


async def recorded(format_: Any) -> bytes:
    """Return the raw answer from a format's fake server, which checks the request."""
    if format_ not in _recorded:
        async with WIRES[format_].serve(lambda _: Says(TEXT), 0) as server:
            adapter = make(WIRES[format_], server.url, "httpx2", [])
            outcome = await ask(adapter)
            body = adapter.render(ChatRequest(messages=(user(),), model=adapter.default_model))
            path = server.requests[0].path
            await adapter.aclose()
            assert outcome.text == TEXT
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            head = "".join(f"{name}: {value}\r\n" for name, value in server.requests[0].headers.items())
            writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
            _recorded[format_] = await reader.readuntil(b"\r\n0\r\n\r\n")
            writer.close()
    return _recorded[format_]


@asynccontextmanager
async def asking(
    format_: Any, *faults: Fault, transport: str = "httpx2", refusals: int = 0, **fields: Any
) -> AsyncIterator[Any]:
    """Yield an adapter and its server, which refuses some requests and answers the others."""
    answer = await recorded(format_)
    async with FaultyServer(lambda number: REFUSED if number <= refusals else answer, faults) as server:
        adapter = make(WIRES[format_], server.url, transport, [], **{"idle_timeout_s": 0.2, "max_retries": 2, **fields})
        exchange: Any = await adapter._connection.open()
        exchange._http._transport._pool._socket_options = SMALL_BUFFER
        try:
            yield adapter, server
        finally:
            await adapter.aclose()


async def ask(adapter: Any, text: str = "Hello") -> Outcome:
    """Run one request to its end."""
    return await collect(adapter, ChatRequest(messages=(user(text),), model=adapter.default_model))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("at", ["accepted", "in the head", "in the body"])
@pytest.mark.parametrize("format_", FORMATS)
async def test_a_request_not_fully_sent_is_sent_again(format_: Any, at: Any, how: Any) -> None:
    """If the connection fails twice before the last byte of the body, the third attempt is answered and billed once."""
    async with asking(format_, Fault(at, how), Fault(at, how), idle_timeout_s=30.0) as (adapter, server):
        outcome = await ask(adapter, LARGE)
        assert outcome.text == TEXT, outcome.error
        assert [(retry.attempt, retry.brief) for retry in outcome.retries] == [
            (1, "no connection"),
            (2, "no connection"),
        ]
        assert (server.connections, server.requests) == (3, 1)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("at", ["working", "head back", "first byte", "in the text", "before the end"])
@pytest.mark.parametrize("format_", FORMATS)
async def test_a_fully_sent_request_is_never_sent_again(format_: Any, at: Any, how: Any) -> None:
    """If the connection fails after the last byte of the body, the one request may be billed, and the error says so."""
    marks = {"in the text": b"o, w", "before the end": END_MARKS[format_]}
    fault = Fault("at a mark", how, marks[at]) if at in marks else Fault(at, how)
    async with asking(format_, fault) as (adapter, server):
        outcome = await ask(adapter)
        assert outcome.error is not None
        assert outcome.error.perhaps_processed
        assert not outcome.retries
        assert (server.connections, server.requests) == (1, 1)
    said = str(outcome.error).removeprefix(f"{format_}: ")
    if at in marks:
        assert outcome.text == (TEXT if at == "before the end" else TEXT[:4]), outcome.text
        assert type(outcome.error) is StreamCut
        assert said in (SILENT, "the connection was lost.", "the reply was incomplete.")
    else:
        assert said == (f"{SILENT} {BILLED}" if how == "silence" else LOST)


@pytest.mark.parametrize(("fault", "requests"), [(Fault("in the head", "reset"), 1), (Fault("working", "close"), 1)])
@pytest.mark.parametrize("format_", FORMATS)
async def test_an_official_client_also_knows_what_was_sent(format_: Any, fault: Fault, requests: int) -> None:
    """The client's own retries are off, and its connection reports the same facts as ours."""
    async with asking(format_, fault, transport="sdk", idle_timeout_s=30.0) as (adapter, server):
        outcome = await ask(adapter, LARGE if fault.at == "in the head" else "Hello")
        assert bool(outcome.retries) is (fault.at == "in the head"), outcome.error
        assert (outcome.error is None) is (fault.at == "in the head")
        assert server.requests == requests


@pytest.fixture
def full_port() -> Iterator[int]:
    """Return a port at which a connection is neither accepted nor refused, because its queue is full."""
    with socket.socket() as listening, contextlib.ExitStack() as clients:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(3):
            waiting = clients.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


@pytest.mark.parametrize("where", ["name: reset", "name: close", "name: silence", "connect: reset", "connect: silence"])
@pytest.mark.parametrize("format_", FORMATS)
async def test_without_a_connection_nothing_was_sent(
    format_: Any, where: str, full_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown host, a silent resolver and a closed or silent port: the request is retried, and the error says which.

    A resolver that hangs up looks like a temporary failure. A port cannot hang up before it has accepted the
    connection; the row `accepted` × `close` covers a port that does so afterwards.
    """

    async def resolve(*_: Any, **__: Any) -> Any:
        if where == "name: silence":
            await asyncio.Event().wait()
        if where == "name: close":
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    url = f"http://127.0.0.1:{9 if where == 'connect: reset' else full_port}/v1"
    if where.startswith("name"):
        monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", resolve)
        url = "http://gateway.example/v1"
    adapter = make(WIRES[format_], url, "httpx2", [], connect_timeout_s=0.1, max_retries=1)
    outcome = await ask(adapter)
    await adapter.aclose()
    assert isinstance(outcome.error, NetworkFailed)
    assert not outcome.error.perhaps_processed
    assert "no connection to http://" in str(outcome.error)
    assert len(outcome.retries) == 1


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("format_", FORMATS)
async def test_a_handshake_that_fails_sends_nothing(format_: Any, how: Any) -> None:
    """The TLS handshake precedes the request."""
    async with FaultyServer(lambda _: b"", [Fault("accepted", how)] * 2) as server:
        url = server.url.replace("http:", "https:")
        adapter = make(WIRES[format_], url, "httpx2", [], connect_timeout_s=0.2, max_retries=1)
        outcome = await ask(adapter)
        await adapter.aclose()
        assert (server.connections, server.requests) == (2, 0)
    assert isinstance(outcome.error, NetworkFailed)
    assert not outcome.error.perhaps_processed
    assert "no connection to https://" in str(outcome.error)


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("format_", FORMATS)
async def test_a_connection_closed_while_idle_is_not_reused(format_: Any, how: Any) -> None:
    """Servers close them after seconds; the user sees nothing, and nothing is sent twice."""
    async with asking(format_, Fault("idle", how)) as (adapter, server):
        for number in (1, 2):
            outcome = await ask(adapter)
            assert outcome.text == TEXT, outcome.error
            assert not outcome.retries
            assert (server.connections, server.requests) == (number, number)


@pytest.mark.parametrize("format_", FORMATS)
async def test_a_connection_that_ends_during_a_second_request_counts_as_sent(format_: Any) -> None:
    """The server may have closed the reused connection as idle; this cannot be known, and a retry may cost money."""
    async with asking(format_) as (adapter, server):
        await ask(adapter)
        server.fail_next(Fault("working", "close"))
        outcome = await ask(adapter)
        assert str(outcome.error) == f"{format_}: {LOST}"
        assert (server.connections, server.requests) == (1, 2)


@pytest.mark.parametrize("format_", FORMATS)
async def test_a_refusal_means_no_work_was_done(format_: Any) -> None:
    """The server itself reports that it did nothing, so the request is retried, answered and billed once."""
    async with asking(format_, refusals=2) as (adapter, server):
        outcome = await ask(adapter)
        assert outcome.text == TEXT, outcome.error
        assert len(outcome.retries) == 2
        assert server.requests == 3


@pytest.mark.parametrize(("what", "requests"), [("compaction", 1), ("count", 3)])
async def test_a_lost_compaction_is_not_retried_a_lost_count_is(what: str, requests: int) -> None:
    """A lost count is retried because it costs nothing."""
    async with asking("messages", *[Fault("working", "close")] * 3) as (adapter, server):
        request = ChatRequest(messages=(user(),), model="claude-opus-4-6")
        with pytest.raises(AdapterError, match="before the reply began"):
            await (adapter.compact(request, "Keep names.") if what == "compaction" else adapter.count_tokens(request))
        assert server.requests == requests
