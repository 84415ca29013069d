"""A loopback HTTP/1.1 server for fake providers: scripted answers, recorded requests.

Shared by the fakes of all providers: sockets, keep-alive, chunked answers that can be cut or held at any byte,
detection of clients that disconnect, and `/control/…` for tests in another process. It does not depend on a provider: a
subclass implements the answer to a request in `answer` and its own controls in `control`.

It is written with asyncio streams, because a web framework does not let a test break a connection in the middle of a
chunk.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.patience import PATIENCE_S
from tests.providers.loopback.answers import CLOSE, DROP, Answer, failure, json_answer

CERTIFICATE = Path(__file__).with_name("loopback_tls.pem")
"""Certificate and key of a TLS server, for 127.0.0.1 and localhost until 2120; it is self-signed, so a client must be
configured to trust it (SSL_CERT_FILE).
"""

_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Payload Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@dataclass
class Received:
    """A request as received. `aborted` becomes true if the client disconnects before the answer is complete."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    query: str = ""
    is_last: bool = False
    """Whether the client expects the connection to be closed after the answer: HTTP/1.0, `Connection: close`."""
    aborted: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)


_QUIET_ROUNDS = 8


class LoopbackServer:
    """The server; see the module docstring. With `tls` it uses HTTPS with `CERTIFICATE`."""

    def __init__(self, *, tls: bool = False) -> None:
        self._tls = tls
        self.requests: list[Received] = []
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: dict[asyncio.StreamWriter, Any] = {}
        """The socket of each connection until the connection is closed."""

    def answer(self, request: Received) -> Answer:
        """Return the answer to the request."""
        raise NotImplementedError

    def control(self, request: Received) -> Any:
        """Carry out a request under `/control/`; return its JSON answer, or None for an unknown request."""
        raise NotImplementedError

    @property
    def port(self) -> int:
        """Return the port on which the server listens."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        """Return the `base_url` for an adapter."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}/v1"

    async def start(self, port: int = 0) -> None:
        """Listen on the loopback interface."""
        self._loop = asyncio.get_running_loop()
        context = _tls_context() if self._tls else None
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=1 << 20, ssl=context)

    async def close(self) -> None:
        """Stop, whatever is still running; no connection is open afterwards."""
        assert self._server is not None
        assert self._loop is not None
        for listening in self._server.sockets:
            # A closed server does not take a connection whose task has yet to start: asyncio leaves its socket open.
            self._loop.remove_reader(listening.fileno())
        quiet = 0
        async with asyncio.timeout(PATIENCE_S):
            # The task of a newly accepted connection starts some iterations of the loop later.
            while quiet < _QUIET_ROUNDS:
                quiet = 0 if self._tasks or self._open_connections() else quiet + 1
                tasks = [task for task in self._tasks if not task.cancelling()]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for writer in self._open:
                    if not self._tls and writer.transport.get_write_buffer_size():  # a client does not read
                        writer.transport.abort()
                await asyncio.sleep(0)
        self._server.close()
        await self._server.wait_closed()

    def _open_connections(self) -> int:
        """Return the number of open connections: a closed transport frees its socket in the loop's next iteration."""
        self._open = {writer: connected for writer, connected in self._open.items() if connected.fileno() >= 0}
        return len(self._open)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def release(self, gate: asyncio.Event) -> None:
        """Open a gate at which an answer waits; may be called from any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(gate.set)

    async def wait_until(self, predicate: Callable[[], bool], limit_s: float = PATIENCE_S) -> None:
        """Wait until an event at the server makes the predicate true; on failure show the recorded events."""
        try:
            async with asyncio.timeout(limit_s):
                while not predicate():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            seen = [(request.method, request.path, request.aborted) for request in self.requests]
            raise AssertionError(f"not seen within {limit_s} s; requests: {seen}") from None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open_connections()
        self._open[writer] = writer.get_extra_info("socket")
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                if not await self._respond(request, reader, writer) or request.is_last:
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            if self._tls:
                # Do not wait for the client's closing message, which TLS requires.
                writer.transport.abort()
            writer.close()

    async def _respond(self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection stays open."""
        if request.path.startswith("/control/"):
            return await self._send(self._controlled(request), request, reader, writer)
        self.requests.append(request)
        self._changed.set()
        return await self._send(self.answer(request), request, reader, writer)

    def _controlled(self, request: Received) -> Answer:
        if request.path == "/control/requests":
            kept = ((r, r.json if r.body else None) for r in self.requests)
            return json_answer([{"path": r.path, "aborted": r.aborted, "notes": r.notes, "body": b} for r, b in kept])
        value = self.control(request)
        return failure(404, "unknown control") if value is None else json_answer(value)

    async def _send(
        self, answer: Answer, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        writer.write(_head(answer))
        # Pipelining is not used by any client here: bytes or an end while answering mean that the client has left.
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            for part in answer.parts:
                if part in (DROP, CLOSE):
                    await writer.drain()
                    if part == DROP:
                        writer.transport.abort()
                    return False
                if isinstance(part, bytes):
                    writer.write(part if answer.content_length else b"%x\r\n%s\r\n" % (len(part), part))
                elif await self._pause(part, leaving):
                    return False
            if not answer.content_length:
                writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True
        finally:
            if not leaving.done():
                leaving.cancel()
                await asyncio.gather(leaving, return_exceptions=True)
            elif not leaving.cancelled() and (leaving.exception() or not leaving.result()):
                # An error is an end too: TLS says "data after close notify" when a part crossed the goodbye.
                request.aborted = True
                self._changed.set()

    async def _pause(self, part: Any, leaving: asyncio.Future[bytes]) -> bool:
        """Wait; return whether the client disconnected in the meantime."""
        pause: Any = part.wait() if isinstance(part, asyncio.Event) else asyncio.sleep(part)
        waiting: asyncio.Future[Any] = asyncio.ensure_future(pause)
        both: set[asyncio.Future[Any]] = {waiting, leaving}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        return leaving.done()


def _tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, target, version = lines[0].split(" ", 2)
    path, _, query = target.partition("?")
    pairs = (line.split(":", 1) for line in lines[1:] if ":" in line)
    headers = {name.lower(): value.strip() for name, value in pairs}
    length = int(headers.get("content-length", 0))
    try:
        body = await reader.readexactly(length) if length else b""
    except asyncio.IncompleteReadError:  # cancelled while it was sent
        return None
    is_last = version == "HTTP/1.0" or headers.get("connection", "").lower() == "close"
    return Received(method, path, headers, body, query, is_last)


def _head(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Status')}"]
    if answer.content_type:
        lines.append(f"Content-Type: {answer.content_type}")
    if answer.content_length:
        lines.append(f"Content-Length: {sum(len(part) for part in answer.parts if isinstance(part, bytes))}")
    else:
        lines.append("Transfer-Encoding: chunked")
    lines.extend(f"{name}: {value}" for name, value in answer.headers)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
