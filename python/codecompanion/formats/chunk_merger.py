"""Merges adjacent HTTP chunks before h11 parses them.

Servers send each event of a stream as a separate HTTP chunk, and h11, which is pure Python, takes 8 µs per chunk: a
burst of 5,000 takes 40 ms of framing (measured: from 64 ms down to 21). This module rewrites only the framing of
`Transfer-Encoding: chunked`, in the network stream of httpcore2 (its documented extension point). The body stays
identical, and input that it cannot parse passes through unchanged for h11 to judge. Informational heads are counted,
because h11 accepts any number of them, 50 µs each, without a pause.
"""

from __future__ import annotations

import re
from typing import Any

from codecompanion.formats.bounded import LimitHit
from codecompanion.formats.byte_limits import MAX_INTERIM_HEADS
from codecompanion.formats.regex import regex

_CHUNK_SIZE = regex(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_CHUNKED = regex(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_MAX_HEAD_LENGTH = 100_000
_MAX_SIZE_LINE_LENGTH = 4_096


class ChunkMerger:
    """Rewrites the bytes of HTTP/1.1 responses. `feed` may return b"" while a head or a size line is incomplete."""

    def __init__(self) -> None:
        self._state = "head"
        self._buffer = b""
        self._left = self._interim = 0

    def begin(self) -> None:
        """Record that a request is being written, so the next bytes are a response head."""
        if self._state == "raw":
            self._state = "head"

    def feed(self, data: bytes) -> bytes:
        """Add received bytes, and return the bytes to pass on."""
        if self._state == "raw":
            return data
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        return self._read_head(data) if self._state == "head" else self._read_chunks(data)

    def finish(self) -> bytes:
        """Return the bytes still held back at the end of the connection."""
        held, self._buffer, self._state = self._buffer, b"", "raw"
        return held

    def _read_head(self, data: bytes) -> bytes:
        start = 0
        while True:
            end = data.find(b"\r\n\r\n", start) + 4
            if data[start : start + 7] != b"HTTP/1."[: len(data) - start] or (
                end < 4 and len(data) - start > _MAX_HEAD_LENGTH
            ):
                self._state = "raw"
                return data
            if end < 4:
                self._buffer = data[start:]
                return data[:start]
            if data[start + 8 : start + 10] != b" 1":
                break
            # An informational head (100, 103): the final head follows.
            self._interim += 1
            if self._interim > MAX_INTERIM_HEADS:
                raise LimitHit(f"the server sent more than {MAX_INTERIM_HEADS} informational responses")
            start = end
        self._interim = 0
        if not _CHUNKED.search(data, start, end):
            self._state = "raw"
            return data
        self._state, self._left = "chunks", -1
        return data[:end] + self._read_chunks(data[end:])

    def _read_chunks(self, data: bytes) -> bytes:
        """Merge complete and partial chunks. `_left`: bytes left of a chunk; 0 is its line ending, -1 a size line."""
        position, left, length = 0, self._left, len(data)
        body: list[bytes] = []
        while True:
            if left > 0:
                piece = data[position : position + left]
                if piece:
                    body.append(piece)
                position += len(piece)
                left -= len(piece)
                if left:
                    break
            if left == 0:
                if length - position < 2 and data[position:] == b"\r\n"[: length - position]:
                    break
                if data[position : position + 2] != b"\r\n":
                    return self._give_up(body, data[position:])
                position += 2
                left = -1
            size = _CHUNK_SIZE.match(data, position)
            if size is None:
                if b"\n" in data[position:] or length - position > _MAX_SIZE_LINE_LENGTH:
                    return self._give_up(body, data[position:])
                break
            left = int(size[1], 16)
            if left == 0:
                return self._give_up(body, data[position:])
            position = size.end()
        self._left, self._buffer = left, data[position:]
        return _frame(body)

    def _give_up(self, body: list[bytes], rest: bytes) -> bytes:
        """Stop merging and pass on everything: the last chunk and the bytes after it, or bytes that are not chunks."""
        self._state = "raw"
        return _frame(body) + rest


def merge_chunks(client: Any, unwritten: type[Exception] | None = None) -> None:
    """Make the connections of an httpx2 client merge chunks; do nothing if its transport has another structure.

    With `unwritten`, a request that is not fully written raises it if the server has hung up or already answers: anyio
    would drop the rest without an error. httpcore2 treats its own `WriteError` as a reason to read the response.
    """
    for transport in (client._transport, *client._mounts.values()):
        merge_chunks_of_pool(getattr(transport, "_pool", None), unwritten)


def merge_chunks_of_pool(pool: Any, unwritten: type[Exception] | None = None) -> None:
    """Make the connections of an httpcore2 pool merge chunks; see `merge_chunks`."""
    backend = getattr(pool, "_network_backend", None)
    if pool is not None and backend is not None:
        pool._network_backend = _Backend(backend, unwritten)


class _Backend:
    """A network backend of httpcore2 whose streams merge chunks."""

    def __init__(self, inner: Any, unwritten: type[Exception] | None) -> None:
        self._inner, self._unwritten = inner, unwritten

    async def connect_tcp(self, *args: Any, **options: Any) -> _Stream:
        return _Stream(await self._inner.connect_tcp(*args, **options), self._unwritten)

    async def connect_unix_socket(self, *args: Any, **options: Any) -> _Stream:
        return _Stream(await self._inner.connect_unix_socket(*args, **options), self._unwritten)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Stream:
    """A network stream of httpcore2 that merges chunks."""

    def __init__(self, inner: Any, unwritten: type[Exception] | None = None) -> None:
        self._inner, self._unwritten = inner, unwritten
        self._merger = ChunkMerger()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 their signature
        while data := await self._inner.read(max_bytes, timeout=timeout):
            # b"" would mean the end of the connection.
            if merged := self._merger.feed(data):
                return merged
        return self._merger.finish()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 their signature
        self._merger.begin()
        # Under TLS, bytes may arrive that are not a response: session tickets.
        is_encrypted = self.get_extra_info("ssl_object") is not None
        if self._unwritten is not None and not is_encrypted and self.get_extra_info("is_readable"):
            raise self._unwritten("the server ended the connection before the request was complete")
        await self._inner.write(buffer, timeout=timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(self, *args: Any, **options: Any) -> _Stream:
        return _Stream(await self._inner.start_tls(*args, **options), self._unwritten)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _frame(body: list[bytes]) -> bytes:
    if not body:
        return b""
    joined = body[0] if len(body) == 1 else b"".join(body)
    return b"%x\r\n%s\r\n" % (len(joined), joined)
