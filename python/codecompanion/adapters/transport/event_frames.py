"""Unwraps the body of a Bedrock reply: AWS event-stream frames → the server-sent events in them.

Anthropic's client decodes the frames; their content is decoded like that of other Messages replies.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from codecompanion.formats.bounded import Unreadable

if TYPE_CHECKING:
    import httpx2
    from anthropic._streaming import ServerSentEvent

_KIND = "application/vnd.amazon.eventstream"


def unwrap_frames(response: httpx2.Response) -> None:
    """Replace a body of frames with one of server-sent events; leave any other body unchanged."""
    import httpx2

    if _KIND not in response.headers.get("content-type", ""):
        return
    frames = cast("httpx2.AsyncByteStream", response.stream)

    class Unwrapped(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async with aclosing(_events(frames)) as events:
                async for event in events:
                    yield event

        async def aclose(self) -> None:
            await frames.aclose()

    response.stream = Unwrapped()
    response.headers["content-type"] = "text/event-stream"


def load_decoder() -> None:
    """Load the decoder's data about Bedrock from botocore's files; slow, so call it in a thread."""
    from anthropic.lib.bedrock._stream_decoder import get_response_stream_shape

    get_response_stream_shape()


async def _events(frames: httpx2.AsyncByteStream) -> AsyncGenerator[bytes, None]:
    from anthropic.lib.bedrock._stream_decoder import AWSEventStreamDecoder

    decoder = AWSEventStreamDecoder()
    try:
        async with (
            aclosing(cast("AsyncGenerator[bytes, None]", aiter(frames))) as pieces,
            aclosing(cast("AsyncGenerator[ServerSentEvent, None]", decoder.aiter_bytes(pieces))) as events,
        ):
            async for event in events:
                data = "".join(f"data: {line}\n" for line in event.data.split("\n"))
                yield f"event: {event.event}\n{data}\n".encode()
    except Exception as error:
        if not isinstance(error, UnicodeDecodeError) and not type(error).__module__.startswith("botocore"):
            raise
        raise Unreadable(f"its frames are damaged ({type(error).__name__})") from error
