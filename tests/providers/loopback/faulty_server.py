"""A server that sends recorded answers and fails at a chosen moment of a request, by reset, close or silence.

It counts the complete requests, which are those a provider processes. Each fault applies to one connection, beginning
with the first; later connections have none. Its receive buffer is small, so that a large request is never completely in
transit.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

How = Literal["reset", "close", "silence"]
Moment = Literal["accepted", "in the head", "in the body", "working", "head back", "first byte", "at a mark", "idle"]
_RESET = struct.pack("ii", 1, 0)
_READ_OF_BODY = 3_000


@dataclass(frozen=True)
class Fault:
    """The fault of one connection. "at a mark": before the answer's bytes `mark`; "idle": after a complete answer."""

    at: Moment
    how: How
    mark: bytes = b""


class FaultyServer:
    """The server. `answer(number)` returns the raw HTTP answer to a request; numbers start at 1."""

    def __init__(self, answer: Callable[[int], bytes], faults: Sequence[Fault] = ()) -> None:
        self._answer, self._faults = answer, list(faults)
        self._next: Fault | None = None
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = self.requests = self.port = 0

    @property
    def url(self) -> str:
        """Return the `base_url` for an adapter."""
        return f"http://127.0.0.1:{self.port}/v1"

    def fail_next(self, fault: Fault) -> None:
        """Apply this fault to the next request, on any connection."""
        self._next = fault

    async def __aenter__(self) -> Self:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        listening.bind(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self._listener = await asyncio.start_server(self._serve, sock=listening, limit=8_192)
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._listener is not None
        self._listener.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks)
        await self._listener.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._talk(reader, writer, self._faults.pop(0) if self._faults else None)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault | None) -> None:
        while not await self._struck(reader, writer, fault):
            pass

    async def _struck(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault | None) -> bool:
        """Answer one request, or fail; return whether the connection has ended."""
        at = fault.at if fault else None
        if at == "in the head":
            await reader.readexactly(10)
        elif at != "accepted":
            length = _length(await reader.readuntil(b"\r\n\r\n"))
            await _skip(reader, _READ_OF_BODY if at == "in the body" else length)
        if at not in ("accepted", "in the head", "in the body"):
            fault, self._next = self._next or fault, None
            self.requests += 1
            answer = self._answer(self.requests)
            writer.write(answer[: _end(answer, fault) if fault else None])
            await writer.drain()
        if fault is not None:
            await _strike(writer, fault.how)
        return fault is not None


def _length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)


async def _skip(reader: asyncio.StreamReader, count: int) -> None:
    while count:
        piece = await reader.read(count)
        if not piece:
            raise ConnectionError
        count -= len(piece)


def _end(answer: bytes, fault: Fault) -> int:
    """Return the number of bytes of the answer that are sent before the fault."""
    body = answer.index(b"\r\n\r\n") + 4
    match fault.at:
        case "head back":
            return body
        case "first byte":
            return body + 10
        case "at a mark":
            return answer.index(fault.mark)
        case "idle":
            return len(answer)
    return 0


async def _strike(writer: asyncio.StreamWriter, how: How) -> None:
    if how == "silence":
        await asyncio.Event().wait()
    if how == "reset":
        connected: socket.socket = writer.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        writer.transport.abort()
