"""Tracks whether a request was delivered, which decides whether it may be sent again.

A provider acts on, and bills, a request whose body it received completely; an incomplete body is refused or dropped. A
request therefore counts as delivered once the last chunk of its body has been written to the connection. After that, a
lost connection or a timeout means *perhaps processed*, and the request is repeated only if the user decides so.

The body itself detects this: the transport asks for another chunk only after the last one is written. That applies to
httpx2 and the official clients, HTTP/1.1 and HTTP/2, and through proxies, whose CONNECT has no body.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import httpx2


class NotDelivered(Exception):
    """Raised if the endpoint did not get the whole request because of the connection; `__cause__` is the reason."""


class AnswerLost(Exception):
    """Raised if the connection ended after the whole request was sent but before its response; see `__cause__`."""


class Delivery:
    """The delivery state of one request. `is_complete`: the endpoint has the whole request and may act on it."""

    def __init__(self) -> None:
        self.is_complete = False

    def failure(self, error: Exception) -> Exception:
        """Return the exception that describes the effect of a transport failure on the request; others are unchanged.

        The result is `NotDelivered`, `AnswerLost`, or one of httpx2's: `ReadTimeout`, which also means that the request
        was delivered, or `ConnectTimeout`, `WriteTimeout` and `PoolTimeout`, which mean that it was not.
        """
        import anyio
        import httpx2

        # httpx2 maps most, but not all, errors of sockets and TLS.
        lost = anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError
        if isinstance(error, httpx2.TimeoutException | TimeoutError):
            is_unsent = isinstance(error, httpx2.ConnectTimeout | httpx2.WriteTimeout | httpx2.PoolTimeout)
            if self.is_complete:
                failure: Exception = httpx2.ReadTimeout("the response did not arrive in time")
            elif is_unsent:
                return error
            else:
                failure = httpx2.WriteTimeout("the request was not accepted in time")
        elif isinstance(error, (httpx2.RequestError, OSError, *lost)):
            failure = AnswerLost() if self.is_complete else NotDelivered()
        else:
            return error
        failure.__cause__ = error
        return failure


_followed: ContextVar[Delivery | None] = ContextVar("followed_delivery", default=None)


@contextmanager
def following(method: str) -> Iterator[Delivery]:
    """Track the request that any client sends inside the block, except a GET, which may always be sent again."""
    delivery = Delivery()
    token = _followed.set(delivery if method == "POST" else None)
    try:
        yield delivery
    finally:
        _followed.reset(token)


def report_deliveries(http: httpx2.AsyncClient) -> None:
    """Make every request by this client notify the enclosing `following` block when it is delivered."""
    import httpx2

    class Followed(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream, delivery: Delivery) -> None:
            self._stream, self._delivery = stream, delivery

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                yield piece
            self._delivery.is_complete = True

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def follow(request: httpx2.Request) -> None:
        delivery = _followed.get()
        if delivery is not None:
            request.stream = Followed(cast("httpx2.AsyncByteStream", request.stream), delivery)

    http.event_hooks = {**http.event_hooks, "request": [*http.event_hooks["request"], follow]}
