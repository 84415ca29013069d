"""The official SDK's client, made for one endpoint; the only place that imports the SDK and its transport."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.chunk_merger import merge_chunks
from codecompanion.adapters.time_limits import ANSWER_LIMIT_S, is_loopback

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

SdkClient: TypeAlias = "AsyncOpenAI | AsyncAnthropic"

_KEEPALIVE_S = 60.0
_SENDING_LIMIT_S = 120.0
_NOWHERE = "http://warm.invalid"


def make_client(settings: AdapterSettings) -> SdkClient:
    """Import the SDK and return a client without a key, without retries, without what the environment adds."""
    import httpx2

    _import_without_aiohttp("anthropic" if settings.kind == "anthropic" else "openai")
    timeout = client_timeout(settings, ANSWER_LIMIT_S)
    limits = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=_KEEPALIVE_S)
    http_client = httpx2.AsyncClient(
        timeout=timeout,
        limits=limits,
        proxy=settings.proxy or None,
        # A proxy of the environment (HTTP_PROXY) does not know this machine's own servers. Certificates named there
        # (SSL_CERT_FILE) are trusted all the same.
        trust_env=not is_loopback(settings.base_url),
        verify=httpx2.create_ssl_context(),
    )
    merge_chunks(http_client)
    # The SDK would put the path of a request after the query of the address.
    parts = urlsplit(settings.base_url)
    common = {
        "base_url": urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")),
        "default_query": dict(parse_qsl(parts.query, keep_blank_values=True)),
        "max_retries": 0,
        "timeout": timeout,
        "http_client": http_client,
    }
    if settings.kind == "anthropic":
        _import_the_rest_of_anthropic()
        client: SdkClient = _anthropic_client(common)
    else:
        _import_the_rest_of_openai()
        client = _openai_client(settings, common)
    # They log addresses (some gateways have the key in theirs), headers and chats; ANTHROPIC_LOG would turn it on.
    for name in ("httpx2", "openai", "anthropic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return client


@cache
def _import_without_aiohttp(name: str) -> None:
    """Where aiohttp is installed both SDKs import it, for a transport that is not used here: 0.1 s."""
    modules: dict[str, Any] = sys.modules
    leaves_out = "aiohttp" not in modules
    if leaves_out:
        modules["aiohttp"] = None  # its import fails
    try:
        importlib.import_module(name)
    finally:
        if leaves_out:
            del modules["aiohttp"]


def _openai_client(settings: AdapterSettings, common: dict[str, Any]) -> AsyncOpenAI:
    import openai

    unwanted: dict[str, Any] = {}
    if settings.kind == "openai_compatible":
        # What the environment says about an OpenAI account is nobody else's business.
        names = [*("OpenAI-Organization", "OpenAI-Project"), *_header_names(os.environ.get("OPENAI_CUSTOM_HEADERS"))]
        unwanted = dict.fromkeys(names, openai.Omit())
    return openai.AsyncOpenAI(
        api_key="", admin_api_key="", default_headers=unwanted, _enforce_credentials=False, **common
    )


def _anthropic_client(common: dict[str, Any]) -> AsyncAnthropic:
    """An empty key, because without one the SDK looks for keys, profiles and identities of the environment."""
    import anthropic

    names = _header_names(os.environ.get("ANTHROPIC_CUSTOM_HEADERS"))
    unwanted: dict[str, Any] = dict.fromkeys(names, anthropic.Omit())
    return anthropic.AsyncAnthropic(api_key="", default_headers=unwanted, open_telemetry=False, **common)


def _header_names(lines: str | None) -> list[str]:
    """Return the names in a variable that holds one header a line."""
    return [line.partition(":")[0].strip() for line in (lines or "").split("\n") if ":" in line]


@cache
def _import_the_rest_of_openai() -> None:
    import openai

    _send_once(lambda http: openai.AsyncOpenAI(api_key="none", base_url=_NOWHERE, http_client=http))


@cache
def _import_the_rest_of_anthropic() -> None:
    import anthropic

    _send_once(
        lambda http: anthropic.AsyncAnthropic(api_key="none", base_url=_NOWHERE, http_client=http, open_telemetry=False)
    )


def _send_once(make: Callable[[httpx2.AsyncClient], SdkClient]) -> None:
    """Import what the SDK and its transport would import during the first request: 30 ms on its way otherwise.

    A request to a transport that answers by itself, in a loop of its own; must run in a thread without a loop.
    """
    import anyio
    import httpx2

    # Modules of these names are imported when they are first touched; httpcore2 does so for each connection.
    for name in ("Event", "Lock", "Semaphore", "CancelScope", "connect_tcp", "fail_after"):
        getattr(anyio, name)

    async def once() -> None:
        transport = httpx2.MockTransport(lambda _: httpx2.Response(200))
        async with make(httpx2.AsyncClient(transport=transport)) as client:
            await client.post("/", cast_to=httpx2.Response, content=b"{}", stream=True)

    anyio.run(once)


def no_header(settings: AdapterSettings) -> Any:
    """Return the value of a header that is not sent, also when the environment has one."""
    if settings.kind == "anthropic":
        import anthropic

        return anthropic.Omit()
    import openai

    return openai.Omit()


def client_timeout(settings: AdapterSettings, silence_s: float | None) -> httpx2.Timeout:
    """Return the limits of one request: of connecting, of sending, and of silence."""
    import httpx2

    return httpx2.Timeout(silence_s, connect=settings.connect_timeout_s, write=_SENDING_LIMIT_S, pool=_SENDING_LIMIT_S)


def response_type() -> type[httpx2.Response]:
    """Return the class that asks the SDK for the raw response."""
    import httpx2

    return httpx2.Response
