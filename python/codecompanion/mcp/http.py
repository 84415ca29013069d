"""The streamable HTTP transport: the SDK's, with the user's headers and a bound on what is read.

Redirects stay within the origin (the SDK's rule), so headers with keys go nowhere else.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from codecompanion.mcp.base import McpError

MAX_REPLY_BYTES = 16_000_000
"""As much as one message over stdio may have; a stream of events may have any number of them."""
CONNECT_S = 10.0
READ_S = 300.0


@contextlib.asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str]) -> AsyncIterator[Any]:
    """Give the two streams the SDK's session reads and writes.

    Raises:
        McpError: a header cannot be sent.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Bounded(httpx2.AsyncByteStream):
        """A body that ends with an error once it is too long."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = MAX_REPLY_BYTES
            async for chunk in self._stream:
                left -= len(chunk)
                if left < 0:
                    raise httpx2.ReadError(f"the answer is longer than {MAX_REPLY_BYTES // 1_000_000} million bytes")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: Any) -> None:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = Bounded(response.stream)

    try:
        client = httpx2.AsyncClient(
            headers=dict(headers),
            timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
            event_hooks={"response": [bound]},
        )
    except (ValueError, TypeError) as error:  # never with the value in it
        raise McpError(f"one of its headers cannot be sent: {type(error).__name__}") from error
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=MAX_REPLY_BYTES) as streams:
        yield streams
