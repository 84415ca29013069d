"""The interface between an adapter and the network: takes a rendered body and returns a response.

No other code knows which transport sends the body. httpx2 is the default (`client.py`). `transport = "sdk"` sends the
body through the provider's own client (`sdk_exchange.py`), for endpoints whose requests must be signed or carry a token
that only that client can create. Both send a request once, follow no redirects, limit time and size, and raise the
errors of httpx2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.transport.client import make_client
from codecompanion.formats.byte_limits import ByteLimits

if TYPE_CHECKING:
    import httpx2


class Exchange(Protocol):
    """Sends requests to one endpoint, each once and without following redirects."""

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        limits: httpx2.Timeout,
        accepts: ByteLimits,
        content: Sequence[bytes] | None = None,
        stream: bool = False,
    ) -> httpx2.Response:
        """Send one request and return its response; with `stream`, before its body is read.

        `content` is the request's body, in chunks; `accepts` limits the size of the response's body.

        Raises: NotDelivered, AnswerLost, httpx2.TimeoutException: as in `Delivery.failure`. NoCredentials: the
        provider's client could not sign the request, which was not sent. httpx2.HTTPStatusError: the endpoint rejected
        the request; the body has been read. LimitHit, Unreadable: the response is too large, or in an encoding that was
        not requested.
        """
        ...

    def secrets(self) -> frozenset[str]:
        """Return the secrets (tokens) that the exchange itself added to requests, which no text may show."""
        ...

    def forget_credentials(self) -> None:
        """Look up the credentials again before the next request, because the endpoint refused them."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


def open_exchange(settings: AdapterSettings, environ: Mapping[str, str]) -> Exchange:
    """Load the transport of an entry and return it; slow, so call it in a thread.

    `environ` is the user's full environment; the host process itself runs without its secret variables.

    Raises:
        NotInstalled: the packages of the extra `sdk` are missing.
    """
    if settings.transport == "httpx2":
        return make_client(settings)
    from codecompanion.adapters.transport.sdk_exchange import open_sdk_exchange

    return open_sdk_exchange(settings, environ)
