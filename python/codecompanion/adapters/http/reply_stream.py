"""Reads the body of one HTTP response as stream events: an event stream, or one JSON object from a gateway.

The wire format decides where a reply ends; this module detects how the body ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from codecompanion.adapters.base import StreamEvent
from codecompanion.adapters.errors.error_map import Endpoint, unexpected_content
from codecompanion.adapters.reply_decoder import ReplyDecoder
from codecompanion.errors import StreamCut
from codecompanion.formats import byte_limits
from codecompanion.formats.bounded import LimitHit

if TYPE_CHECKING:
    import httpx2

_log = logging.getLogger(__name__)

# Seconds to wait for the rest of the body after `[DONE]`, so that the connection can be reused.
_DRAIN_S = 0.05
_SNIFFED_BYTES = 2_000
_STREAM_STARTS = (b"data:", b":", b"event:", b"id:", b"retry:", b"error:")


async def read_reply(
    response: httpx2.Response, decoder: ReplyDecoder, endpoint: Endpoint, judge: Callable[[int], None]
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of the reply, `Finished` last. A reply over the size limits is cut off and not retried.

    `judge` receives the stored size of the reply after each chunk of the body, and raises if the reply takes too long.

    Raises: AdapterError: the reply is incomplete; all earlier events have been yielded.
    """
    try:
        async with (
            aclosing(response.aiter_bytes()) as pieces,
            aclosing(
                _read_body(pieces, response.headers.get("content-type", "").lower(), decoder, endpoint, judge)
            ) as events,
        ):
            async for event in events:
                yield event
        return
    except LimitHit as hit:
        said = endpoint.say(f"{hit}.")
    raise final_cut(said)


def final_cut(sentence: str) -> StreamCut:
    """Return the error for a reply that would be cut off again on a retry."""
    error = StreamCut(sentence)
    error.retryable = False
    return error


async def _read_body(
    pieces: AsyncIterator[bytes], kind: str, decoder: ReplyDecoder, endpoint: Endpoint, judge: Callable[[int], None]
) -> AsyncGenerator[StreamEvent, None]:
    first = b""
    if "text/event-stream" not in kind:
        first = await _first_bytes(pieces)
        if not _is_event_stream(kind, first, endpoint):
            for event in decoder.read_json(await _whole(first, pieces)):
                yield event
            if decoder.problem is not None:
                raise decoder.problem
            return
    for event in decoder.feed(first):
        yield event
    async for piece in pieces:
        for event in decoder.feed(piece):
            yield event
        if decoder.problem is not None:
            raise decoder.problem
        if decoder.seen_done:
            await _drain(pieces)
            break
        judge(decoder.kept_chars)
    for event in decoder.finish():
        yield event
    if decoder.problem is not None:
        raise decoder.problem


async def _whole(first: bytes, pieces: AsyncIterator[bytes]) -> bytes:
    """Read the whole body into memory, with a smaller limit than for a body that is decoded as it arrives."""
    body, limit = bytearray(first), byte_limits.WHOLE_REPLY.decoded_bytes
    async for piece in pieces:
        body += piece
        if len(body) > limit:
            raise LimitHit(f"the reply is larger than {limit // byte_limits.MB} MB")
    return bytes(body)


async def _first_bytes(pieces: AsyncIterator[bytes]) -> bytes:
    start = b""
    async for piece in pieces:
        start += piece
        if start.strip() or len(start) > _SNIFFED_BYTES:
            break
    return start


def _is_event_stream(kind: str, start: bytes, endpoint: Endpoint) -> bool:
    """Return whether the body is an event stream rather than JSON; servers mislabel both.

    Raises:
        MalformedReply: the body is neither.
    """
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if "html" in kind or not text:
        if text or not kind:
            raise unexpected_content(kind, start, endpoint)
        return False
    if text.startswith(_STREAM_STARTS):
        return True
    if text.startswith(b"{"):
        return False
    raise unexpected_content(kind, start, endpoint)


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read the rest of the body, so that the connection returns to the pool instead of being closed."""
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in pieces:
                pass
    except Exception as error:
        # The reply is complete; a failure here only costs a new connection.
        _log.debug("the body did not end after its end marker: %s", type(error).__name__)
