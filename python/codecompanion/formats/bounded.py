"""Reads bytes from outside: counts them, decompresses them in slices, and stops at a limit.

HTTP bodies of providers, pages and MCP servers pass through `bounded_pieces` as raw bytes; the limits are in
`byte_limits.py`. Requests ask for gzip or deflate only, because the standard library has a decompressor that stops at a
given length only for these. Any other or nested encoding is rejected with a message.
"""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Iterator

from codecompanion.formats.byte_limits import (
    MAX_JSON_VALUES,
    MAX_MEMBERS,
    MB,
    RATIO_GRACE,
    SLICE,
    TURN_S,
    ByteLimits,
)
from codecompanion.formats.regex import regex

ACCEPT_ENCODING = "gzip, deflate"
"""The header that makes a server send only encodings this module decodes; part of every request.

Without it the client would offer other encodings, depending on the installed packages.
"""
_PLAIN = ("", "identity", "none")
_GZIP = b"\x1f\x8b"
_STRING = regex(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BLANK_LINE = regex(rb"\r?\n\r?\n")
_MAX_TAIL = 64
_COUNTED_AT_ONCE = 65_536


class LimitHit(Exception):
    """The data exceeds a limit that no honest response reaches; the message completes a sentence about the server."""


class Unreadable(Exception):
    """The body cannot be decoded; the message completes a sentence about the server."""


class ByteCount:
    """Decodes and counts one body. `feed` yields slices of at most `SLICE` bytes."""

    def __init__(self, limits: ByteLimits, encoding: str = "") -> None:
        self._limits = limits
        self._name = _encoding(encoding)
        self._start = b""
        self._inflate = zlib.decompressobj(31) if self._name == "gzip" else None
        self._members, self._ended = 1, False
        self.wire = self.decoded = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes.

        Raises: LimitHit: a limit is exceeded; with `cut` the output ends silently instead (`is_full`). Unreadable: the
        bytes do not match the encoding.
        """
        self.wire += len(data)
        if self.wire > self._limits.wire_bytes and not self._limits.cut:
            raise LimitHit(f"{self._limits.what} is larger than {_size(self._limits.wire_bytes)}")
        if self._name == "deflate" and self._inflate is None:
            self._start += data
            if len(self._start) < 2:
                return
            data = self._start
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if _is_zlib(data) else -zlib.MAX_WBITS)
        if self._inflate is None:
            for start in range(0, len(data), SLICE):
                yield self._counted(data if len(data) <= SLICE else data[start : start + SLICE])
            return
        while data and not self.is_full:
            if self._inflate.eof:
                data = self._next_member(data)
                continue
            try:
                piece = self._inflate.decompress(data, SLICE)
            except zlib.error as error:
                raise Unreadable(f"{self._limits.what} is not valid {self._name}") from error
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            if piece:
                yield self._counted(piece)

    def _next_member(self, data: bytes) -> bytes:
        """Decode the start of the next member of a gzip body; return b"" if the remaining bytes are not a member.

        Never feed a decompressor that has reached its end: it keeps all the bytes, and copies them each time.
        """
        if self._name == "deflate" or self._ended:
            return b""
        self._start = (self._start + data)[: len(data) + 1]
        if len(self._start) < len(_GZIP):
            return b""
        data, self._start = self._start, b""
        self._ended = not data.startswith(_GZIP)
        if self._ended:
            return b""
        self._members += 1
        if self._members > MAX_MEMBERS + self.decoded // SLICE:
            raise LimitHit(f"{self._limits.what} is compressed in more than {MAX_MEMBERS:,} parts")
        self._inflate = zlib.decompressobj(31)
        return data

    @property
    def is_full(self) -> bool:
        """Return whether the limit was reached and the remaining bytes are not needed."""
        limits = self._limits
        return limits.cut and (self.decoded >= limits.decoded_bytes or self.wire >= limits.wire_bytes)

    def _counted(self, piece: bytes) -> bytes:
        limits = self._limits
        if limits.cut:
            piece = piece[: max(0, limits.decoded_bytes - self.decoded)]
        self.decoded += len(piece)
        if self.decoded > limits.decoded_bytes:
            raise LimitHit(f"{limits.what} is larger than {_size(limits.decoded_bytes)}")
        if self.decoded > RATIO_GRACE and self.decoded > limits.ratio * self.wire:
            raise LimitHit(f"{limits.what} is compressed by a factor of more than {limits.ratio}")
        return piece


class Turns:
    """Lets the event loop run after `TURN_S` of work; call `await turns.pause()` between units of work."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def pause(self) -> None:
        """Let other tasks run if `TURN_S` has passed."""
        if time.perf_counter() - self._began > TURN_S:
            await asyncio.sleep(0)
            self._began = time.perf_counter()


async def bounded_pieces(
    raw: AsyncIterable[bytes], limits: ByteLimits, encoding: str = ""
) -> AsyncGenerator[bytes, None]:
    """Yield the decoded body in slices, and let other tasks run between them.

    Raises: LimitHit: the body is too large, too compressed or too slow. Unreadable: it cannot be
    decoded.
    """
    source = aiter(raw)
    try:
        count, turns = ByteCount(limits, encoding), Turns()
        deadline = None if limits.total_s is None else asyncio.get_running_loop().time() + limits.total_s
        while not count.is_full:
            try:
                async with asyncio.timeout_at(deadline):
                    data = await anext(source)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if deadline is None or asyncio.get_running_loop().time() < deadline:
                    raise
                raise LimitHit(f"{limits.what} did not end within {limits.total_s:g} s") from None
            for piece in count.feed(data):
                yield piece
                await turns.pause()
    except Exception:
        # With `cut` any end of the body is accepted, even a broken connection.
        if not limits.cut:
            raise
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()


def has_too_many_values(text: bytes, limit: int = MAX_JSON_VALUES) -> bool:
    """Return whether a JSON document would be far larger in memory, because it has too many lists and objects."""
    if len(text) < limit or count_marks(text) <= limit:
        return False
    count = ValueCount(of_events=False, limit=limit)
    try:
        for start in range(0, len(text), _COUNTED_AT_ONCE):
            count.take(text[start : start + _COUNTED_AT_ONCE])
    except LimitHit:
        return True
    return False


class ValueCount:
    """Counts the values of JSON that arrives in slices; with `of_events`, per event of an event stream."""

    def __init__(self, *, of_events: bool, limit: int = MAX_JSON_VALUES) -> None:
        self._of_events, self._limit = of_events, limit
        self._values, self._tail = 0, b""
        self._in_string = False

    def take(self, piece: bytes) -> None:
        """Count the values in a slice. Raises `LimitHit`."""
        parts = _BLANK_LINE.split(self._tail + piece) if self._of_events else [self._tail + piece]
        for number, part in enumerate(parts):
            if number:
                self._values, self._in_string = 0, False
            self._count(part, is_last=number == len(parts) - 1)
            if self._values > self._limit:
                raise LimitHit(f"a message has more than {self._limit:,} values")

    def _count(self, text: bytes, *, is_last: bool) -> None:
        # A slice may end in the middle of an escape or a blank line.
        bare = text.rstrip(b"\\\r\n") if is_last else text
        self._tail = text[len(bare) :][-_MAX_TAIL:]
        bare, quote, _ = _STRING.sub(b"", b'"' + bare if self._in_string else bare).partition(b'"')
        self._values += count_marks(bare)
        self._in_string = bool(quote)


def count_marks(text: bytes) -> int:
    """Return an upper bound for the number of values in a JSON document."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _encoding(header: str) -> str:
    """Return the encoding of a body: "", "gzip" or "deflate"."""
    names = [name for name in (part.strip().lower() for part in header.split(",")) if name not in _PLAIN]
    if not names:
        return ""
    name = names[0].removeprefix("x-")
    if len(names) > 1 or name not in ("gzip", "deflate"):
        shown = "".join(c if c.isprintable() else "?" for c in ", ".join(names))[:60]
        raise Unreadable(f"it is encoded as {shown}, which was not requested")
    return name


def _is_zlib(start: bytes) -> bool:
    """Return whether a deflated body has a zlib header; some servers omit it."""
    return start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0


def _size(count: int) -> str:
    return f"{count // MB} MB" if count >= MB else f"{count // 1_000} kB"
