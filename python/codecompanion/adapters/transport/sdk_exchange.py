"""An exchange through an official client, using its low-level call with our body, time limits and retries.

The client adds the cloud's requirements: a signature, a token, a path that contains the model. Plain endpoints get the
body byte for byte; Bedrock and Vertex get the fields without `model`, which their clients move into the path. The
underlying connection is created by `client.py`, so limits, proxies and certificates do not differ. The response is
returned before its body is read, for our own decoders.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.clouds import TAKES_FIELDS
from codecompanion.adapters.transport.bounded_response import bound
from codecompanion.adapters.transport.client import Address, head_limit_s, make_http, read_bounded
from codecompanion.adapters.transport.cloud_credentials import (
    NoCredentials,
    NotInstalled,
    is_about_credentials,
    show_places,
    why_no_credentials,
)
from codecompanion.adapters.transport.delivery import following
from codecompanion.adapters.transport.event_frames import load_decoder, unwrap_frames
from codecompanion.adapters.transport.sdk_clients import CLIENTS, LOGGERS, client_key
from codecompanion.formats.bounded import ACCEPT_ENCODING
from codecompanion.formats.byte_limits import ERROR_BODY, ByteLimits

if TYPE_CHECKING:
    import httpx2


class SdkExchange:
    """Sends requests to one endpoint through an official client (`exchange.Exchange`)."""

    def __init__(self, settings: AdapterSettings, http: httpx2.AsyncClient, environ: Mapping[str, str]) -> None:
        self._settings, self._http, self._environ = settings, http, environ
        self._address = Address(settings.base_url)
        self._secrets: set[str] = set()
        hooks = http.event_hooks["request"]
        http.event_hooks = {"request": [*hooks, self._remember_secrets], "response": [_bound_error]}
        self._left_out = _left_out(settings)
        self._client: Any = self._make()

    def __repr__(self) -> str:
        """Show only the name."""
        return f"SdkExchange({self._settings.name!r})"

    def forget_credentials(self) -> None:
        """Discard the client, so that a new one looks up the credentials before the next request."""
        self._client = None

    def secrets(self) -> frozenset[str]:
        """Return the tokens sent with requests."""
        return frozenset(self._secrets)

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
        """Send one request and return its response, as in `Exchange.send`."""
        body = None if content is None else b"".join(content)
        failure: Exception | None = None
        with following(method) as delivery:
            try:
                async with asyncio.timeout(head_limit_s(limits, len(body or b""))):
                    response = await self._call(method, path, headers, limits, body)
                bound(response, accepts)
                unwrap_frames(response)
                if not stream:
                    await read_bounded(response)
            except Exception as error:
                failure = delivery.failure(self._plain_failure(error))
        if isinstance(failure, NoCredentials):
            self.forget_credentials()  # the user may have logged in before the next request
        if failure is not None:
            # Outside the block above, because the client's own exception contains the request with its headers.
            raise failure
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _make(self) -> Any:
        show_places(self._environ)
        return CLIENTS[client_key(self._settings)](self._settings, self._http, self._environ)

    async def _call(
        self, method: str, path: str, headers: Mapping[str, str], limits: httpx2.Timeout, content: bytes | None
    ) -> httpx2.Response:
        import httpx2

        params: dict[str, str] = {}
        if self._settings.client not in TAKES_FIELDS:  # clients in TAKES_FIELDS build the path
            path, params = self._address.of(path)
        options = {
            "headers": {**self._left_out, "accept-encoding": ACCEPT_ENCODING, **headers},
            "params": params,
            "timeout": limits,
            "max_retries": 0,
            "follow_redirects": False,
        }
        if self._client is None:
            self._client = await asyncio.to_thread(self._make)
        how: dict[str, Any] = {"cast_to": httpx2.Response, "options": options, "stream": True, "stream_cls": object}
        if method == "GET":
            got: httpx2.Response = await self._client.get(path, **how)
            return got
        posted: httpx2.Response = await self._client.post(path, content=content, **how)
        return posted

    def _plain_failure(self, error: Exception) -> Exception:
        """Convert an SDK exception to the one that httpx2 would raise."""
        import httpx2

        response = getattr(error, "response", None)
        if isinstance(response, httpx2.Response):
            return httpx2.HTTPStatusError(str(response.status_code), request=response.request, response=response)
        cause = error.__cause__ if type(error).__name__ in ("APITimeoutError", "APIConnectionError") else error
        if isinstance(cause, httpx2.RequestError | ssl.SSLError):
            return cause
        if is_about_credentials(error, self._settings.client):
            return why_no_credentials(error, self._settings.client)
        return cause if isinstance(cause, Exception) else error

    async def _remember_secrets(self, request: httpx2.Request) -> None:
        """Remember the tokens of a request that is being sent; the entry's own key is already known."""
        if not self._settings.client:
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        sent = (token if scheme.lower() == "bearer" else "", request.headers.get("x-amz-security-token", ""))
        self._secrets.update(filter(None, sent))


async def _bound_error(response: httpx2.Response) -> None:
    """Limit the body of a refusal, which the client itself reads."""
    if not response.is_success:
        bound(response, ERROR_BODY)


def _left_out(settings: AdapterSettings) -> dict[str, Any]:
    """Return the headers that the provider's own client must not add.

    The key is the entry's own key, sent as a header of each request; the environment's OpenAI account is sent only to
    OpenAI.
    """
    names, variable = ["authorization"], "OPENAI_CUSTOM_HEADERS"
    left_out: Any
    if settings.client:
        return {}
    if settings.kind == "anthropic":
        from anthropic import omit as left_out

        variable = "ANTHROPIC_CUSTOM_HEADERS"
    else:
        from openai import omit as left_out
    if settings.kind not in ("openai", "openai_responses"):
        lines = os.environ.get(variable, "").split("\n")
        names += ["openai-organization", "openai-project", *(line.partition(":")[0].strip().lower() for line in lines)]
    return {name: left_out for name in names if name}


def open_sdk_exchange(settings: AdapterSettings, environ: Mapping[str, str]) -> SdkExchange:
    """Import the official client of an entry and return the exchange; slow, so call it in a thread.

    Raises:
        NotInstalled: the packages of the extra `sdk` are missing.
        NoCredentials: the client cannot be created with this configuration.
    """
    try:
        exchange = SdkExchange(settings, make_http(settings), environ)
        if settings.client == "bedrock":
            load_decoder()
    except ImportError as error:
        raise NotInstalled from error
    except Exception as error:
        if is_about_credentials(error, settings.client):
            raise why_no_credentials(error, settings.client) from None
        raise
    for name in LOGGERS:
        # The clients log requests with their bodies.
        logging.getLogger(name).setLevel(logging.WARNING)
    return exchange
