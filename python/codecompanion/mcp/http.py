"""Provides the SDK's streamable HTTP transport with the user's headers and read limits (`byte_limits.py`).

The SDK follows redirects only within the origin, so headers with keys are never sent elsewhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from codecompanion.formats.bounded import ACCEPT_ENCODING, LimitHit, Unreadable, ValueCount, bounded_pieces
from codecompanion.formats.byte_limits import MAX_EVENT_BYTES, MAX_MESSAGE_VALUES, MCP_EVENTS, MCP_REPLY, ByteLimits
from codecompanion.formats.chunk_merger import merge_chunks
from codecompanion.mcp.server_types import McpError

CONNECT_S = 10.0
READ_S = 300.0


@contextlib.asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str]) -> AsyncIterator[Any]:
    """Provide the two streams that the SDK's session reads and writes.

    Raises:
        McpError: a header cannot be sent.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Bounded(httpx2.AsyncByteStream):
        """A response body that is decoded in slices and raises an error at its limits."""

        def __init__(self, stream: Any, limits: ByteLimits, encoding: str) -> None:
            self._stream, self._limits, self._encoding = stream, limits, encoding
            self._values = ValueCount(of_events=limits is MCP_EVENTS, limit=MAX_MESSAGE_VALUES)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async with contextlib.aclosing(bounded_pieces(self._stream, self._limits, self._encoding)) as pieces:
                    async for piece in pieces:
                        self._values.take(piece)
                        yield piece
            except (LimitHit, Unreadable) as error:
                raise httpx2.ReadError(str(error)) from None

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: Any) -> None:
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        limits = MCP_EVENTS if is_stream else MCP_REPLY
        response.stream = Bounded(response.stream, limits, response.headers.pop("content-encoding", ""))

    try:
        client = httpx2.AsyncClient(
            headers={"accept-encoding": ACCEPT_ENCODING, **headers},
            timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
            event_hooks={"response": [bound]},
        )
    except (ValueError, TypeError) as error:  # the message must not contain the value
        raise McpError(f"one of its headers cannot be sent: {type(error).__name__}") from error
    merge_chunks(client)
    events = streamable_http_client(url, http_client=client, max_sse_event_size=MAX_EVENT_BYTES)
    async with client, events as streams:
        yield streams
