"""The seam between an adapter and the network: a rendered body goes in, a response comes out.

Nothing above it knows how the body travelled. httpx2 is the default (`client.py`). `transport = "sdk"` sends the body
through the provider's own client (`sdk_exchange.py`), for endpoints whose requests must be signed or carry a token that
only such a client can make. In both: one request is sent once, redirects are not followed, time and size are limited
here, and failures are those of httpx2.
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
    """Sends to one endpoint. Tries once, follows no redirect."""

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
        """Send one request and return its response, with `stream` before its body is read; limited by `accepts`.

        `content` is the request's body, in chunks.

        Raises: NotDelivered, AnswerLost, httpx2.TimeoutException: as in `Delivery.failure`. NoCredentials: the
        provider's client could not sign the request, which was not sent. httpx2.HTTPStatusError: the endpoint rejected
        the request; the body has been read. LimitHit, Unreadable: the response is too large, or in an encoding that was
        not requested.
        """
        ...

    def secrets(self) -> frozenset[str]:
        """Return the secrets it has put into requests by itself, which no text may show: tokens."""
        ...

    def forget_credentials(self) -> None:
        """Find credentials again before the next request: the endpoint refused them."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


def open_exchange(settings: AdapterSettings, environ: Mapping[str, str]) -> Exchange:
    """Import the modules of an entry's transport and return it; slow, so call it in a thread.

    `environ` are the variables of the user's environment: a host's process is started without the secret ones.

    Raises:
        NotInstalled: the packages of the extra `sdk` are missing.
    """
    if settings.transport == "httpx2":
        return make_client(settings)
    from codecompanion.adapters.transport.sdk_exchange import open_sdk_exchange

    return open_sdk_exchange(settings, environ)
