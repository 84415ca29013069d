"""Sends requests to one endpoint over httpx2, with its base URL, TLS, proxies and common headers.

httpx2 is the transport below the official SDKs, used here without them: importing `openai` takes 0.65 s of CPU and
`anthropic` twice that, for one `post` of a body and headers that are created here. The SDKs' additions are kept: the
version of the Messages API, an OpenAI account's organization and project, and the definition of a failed connection.
`exchange.py` selects the requests that use an SDK instead.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from codecompanion import __version__
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.installed import edition_of
from codecompanion.adapters.transport.bounded_response import bound
from codecompanion.adapters.transport.delivery import following, report_deliveries
from codecompanion.adapters.transport.time_limits import ANSWER_LIMIT_S, is_loopback
from codecompanion.formats.bounded import ACCEPT_ENCODING
from codecompanion.formats.byte_limits import ERROR_BODY, ByteLimits
from codecompanion.formats.chunk_merger import merge_chunks

if TYPE_CHECKING:
    import httpx2

_KEEPALIVE_S = 55.0
"""Seconds to keep idle connections, less than the minute after which many gateways close them: httpcore2 detects a
closed connection before reusing it, but not one that is being closed at that moment.
"""
_SENDING_LIMIT_S = 120.0
_SLOWEST_UPLOAD = 10_000
"""Minimum supported upload speed, in bytes per second."""
_MESSAGES_VERSION = "2026-10-21"  # as anthropic 2.11 sends it (providers.md)


class HttpClient:
    """Sends requests to one endpoint, each once; it holds no key and follows no redirects."""

    def __init__(self, http: httpx2.AsyncClient, settings: AdapterSettings) -> None:
        self._http = http
        self._address = Address(settings.base_url)
        self._headers = _common_headers(settings)

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

        `accepts` limits the size of the response's body.

        Raises: NotDelivered, AnswerLost, httpx2.TimeoutException: as in `Delivery.failure`. httpx2.HTTPStatusError: the
        endpoint rejected the request; the body has been read. LimitHit, Unreadable: the response is too large, or in an
        encoding that was not requested.
        """
        address, query = self._address.of(path)
        chunks = content or ()
        length = sum(map(len, chunks))
        sized = {"content-length": str(length)} if len(chunks) > 1 else {}
        own = {name.lower(): value for name, value in headers.items()}
        common = self._headers if content is not None else _without(self._headers, "content-type")
        request = self._http.build_request(
            method,
            address,
            params=query or None,
            headers={**common, **own, **sized},
            content=_Chunks(chunks) if sized else b"".join(chunks),
            timeout=limits,
        )
        with following(method) as delivery:
            try:
                async with asyncio.timeout(head_limit_s(limits, length)):
                    response = await self._http.send(request, stream=True, follow_redirects=False)
                if response.is_success and not stream:
                    bound(response, accepts)
                    await read_bounded(response)
            except Exception as error:
                raise delivery.failure(error)  # noqa: B904 it has its cause
        if not response.is_success:
            bound(response, ERROR_BODY)
            await read_bounded(response)
            response.raise_for_status()
        elif stream:
            bound(response, accepts)
        return response

    def secrets(self) -> frozenset[str]:
        """Return an empty set: the caller creates the headers, and knows their content."""
        return frozenset()

    def forget_credentials(self) -> None:
        """Do nothing, because the client has no credentials."""

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


class _Chunks:
    """An async iterable over the chunks of a body for httpx2. Joining the chunks would copy megabytes."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


class Address:
    """Builds request URLs: a path below `base_url`, followed by its query."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self._base = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
        self._query = dict(parse_qsl(parts.query, keep_blank_values=True))

    def of(self, path: str) -> tuple[str, dict[str, str]]:
        """Return the (URL, query) of a path or a full URL; the query includes the one in `base_url`."""
        parts = urlsplit(path)
        whole = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        query = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **self._query}
        return whole if parts.scheme and parts.netloc else f"{self._base}/{whole.lstrip('/')}", query


def head_limit_s(limits: httpx2.Timeout, body_bytes: int) -> float | None:
    """Return the time limit for the response head in seconds, or None; trickling bytes evade a silence limit."""
    if limits.read is None:
        return None
    return (limits.connect or 0.0) + (limits.write or 0.0) + limits.read + body_bytes / _SLOWEST_UPLOAD


async def read_bounded(response: httpx2.Response) -> None:
    """Read the body up to its limits, then return the connection to the pool or close it."""
    try:
        await response.aread()
    finally:
        await response.aclose()


def make_client(settings: AdapterSettings) -> HttpClient:
    """Import the transport, read the certificates and return the client; slow, so call it in a thread."""
    return HttpClient(make_http(settings), settings)


def make_http(settings: AdapterSettings) -> httpx2.AsyncClient:
    """Create the HTTP client of an endpoint, for this exchange and the SDKs'; slow, so call it in a thread."""
    import_transport()
    import httpcore2
    import httpx2

    http = httpx2.AsyncClient(
        timeout=client_timeout(settings, ANSWER_LIMIT_S),
        limits=httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=_KEEPALIVE_S),
        proxy=settings.proxy or None,
        # A proxy from the environment (HTTP_PROXY) is not used for this machine's own servers. Certificates named
        # there (SSL_CERT_FILE) are still trusted.
        trust_env=not is_loopback(settings.base_url),
        verify=_certificates(settings),
    )
    merge_chunks(http, httpcore2.WriteError)
    report_deliveries(http)
    # httpx2 logs addresses, which contain the key for some gateways.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    return http


def client_timeout(settings: AdapterSettings, silence_s: float | None) -> httpx2.Timeout:
    """Return the time limits of one request for connecting, sending and silence."""
    import httpx2

    return httpx2.Timeout(silence_s, connect=settings.connect_timeout_s, write=_SENDING_LIMIT_S, pool=_SENDING_LIMIT_S)


def _certificates(settings: AdapterSettings) -> ssl.SSLContext:
    """Return a TLS context with the trusted certificates (read in 30 ms), or an empty one if nothing is encrypted."""
    import httpx2

    addresses = (settings.base_url, settings.chat_path, settings.models_path, settings.limits_path, settings.proxy)
    encrypted = not is_loopback(settings.base_url) or any("https:" in address for address in addresses)
    return httpx2.create_ssl_context() if encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def import_transport() -> None:
    """Import httpx2 and the modules that it would import during the first request; takes 70 ms of CPU."""
    for step in transport_steps():
        step()


def transport_steps() -> Iterator[Callable[[], object]]:
    """Yield the steps of `import_transport` in order, so that a host can do more urgent work between them."""
    for name in ("anyio", "http.cookiejar", "importlib.resources"):  # half of the modules httpx2 imports
        yield partial(import_module, name)
    yield _import_httpx2
    yield _touch_anyio


def _import_httpx2() -> None:
    _tell_version()
    import_module("httpx2")


def _touch_anyio() -> None:
    """Make anyio import the modules that httpcore2 needs to connect, as it would on first use."""
    import anyio

    for name in ("Event", "Lock", "Semaphore", "CancelScope", "connect_tcp", "fail_after"):
        getattr(anyio, name)


def _tell_version() -> None:
    """Tell httpx2 its own version, which it would otherwise read from its metadata (`installed`)."""
    edition = "" if "httpx2" in sys.modules else edition_of("httpx2")
    if edition:
        known = ModuleType("httpx2.__version__")
        vars(known).update(__title__="httpx2", __description__="", __version__=edition)
        sys.modules[known.__name__] = known


def _common_headers(settings: AdapterSettings) -> dict[str, str]:
    """Return the headers of every request, with lower-case names."""
    headers = {
        "accept": "application/json",
        "accept-encoding": ACCEPT_ENCODING,
        "content-type": "application/json",
        "user-agent": f"codecompanion/{__version__}",
    }
    if settings.kind == "anthropic":
        headers["anthropic-version"] = _MESSAGES_VERSION
    if settings.kind in ("openai", "openai_responses"):
        # The environment's OpenAI account is sent only to OpenAI.
        account = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}
        headers |= {name: os.environ[variable] for name, variable in account.items() if variable in os.environ}
        lines = (line.partition(":") for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n"))
        headers |= {name.strip().lower(): value.strip() for name, colon, value in lines if colon}
    return _without(headers, "authorization", "x-api-key")


def _without(headers: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in names}
