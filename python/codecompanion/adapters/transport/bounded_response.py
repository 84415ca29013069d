"""Applies the limits of `formats/byte_limits.py` to the body of one HTTP response before anything reads it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from codecompanion.formats.bounded import bounded_pieces
from codecompanion.formats.byte_limits import ByteLimits

if TYPE_CHECKING:
    import httpx2


def bound(response: httpx2.Response, limits: ByteLimits) -> None:
    """Replace the body with a stream that, unlike httpx2's own, is decoded in slices and ends at the limits."""
    import httpx2

    stream = cast("httpx2.AsyncByteStream", response.stream)
    encoding = response.headers.pop("content-encoding", "")

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async with aclosing(bounded_pieces(stream, limits, encoding)) as pieces:
                async for piece in pieces:
                    yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Bounded()
