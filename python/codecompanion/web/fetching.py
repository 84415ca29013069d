"""Fetches a page through the user's proxy, with limits on size and time, and only from checked addresses.

It uses httpcore2, the transport below httpx2, because its network backend allows checking an address before connecting
to it. Redirects are followed here, and each target is checked again; compressed bodies are decompressed up to the
limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from email.message import Message as Headers
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from codecompanion import __version__
from codecompanion.errors import InputError
from codecompanion.formats.addresses import Address, is_local_name, parts_of, resolved, why_refused
from codecompanion.formats.bounded import ACCEPT_ENCODING, LimitHit, Unreadable, bounded_pieces
from codecompanion.formats.byte_limits import PAGE
from codecompanion.formats.chunk_merger import merge_chunks_of_pool

if TYPE_CHECKING:
    import httpcore2

TIME_LIMIT_S = 30.0
CONNECT_LIMIT_S = 10.0
MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_ACCEPTED = "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, application/pdf;q=0.7, */*;q=0.1"


class Fetched(msgspec.Struct, frozen=True):
    """The response from a URL. `url` is the final URL after redirects; `charset` is "" if not specified."""

    url: str
    body: bytes
    content_type: str = ""
    charset: str = ""


class Fetcher:
    """Fetches pages. `refuse` returns why an address is not allowed; `proxy` is the configured proxy ("" for none)."""

    def __init__(
        self, proxy: str = "", refuse: Callable[[Address], str] = why_refused, time_limit_s: float = TIME_LIMIT_S
    ) -> None:
        self._proxy, self._refuse, self._time_limit_s = proxy, refuse, time_limit_s

    async def fetch(self, url: str) -> Fetched:
        """Return the response from a URL.

        Raises:
            InputError: the page may not be fetched, is missing, too large or too slow; the message is one sentence.
        """
        import httpcore2

        try:
            async with asyncio.timeout(self._time_limit_s):
                return await self._follow(parts_of(url))
        except (TimeoutError, httpcore2.TimeoutException):
            raise InputError(f"{url} was not fetched: it took longer than {self._time_limit_s:.0f} s.") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError, OSError) as error:
            raise InputError(f"{url} was not fetched: {_why(error)}.") from error
        except (LimitHit, Unreadable) as error:
            raise InputError(f"{url} was not fetched: {error}.") from None

    async def _follow(self, parts: SplitResult) -> Fetched:
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._get(parts)
            if isinstance(found, Fetched):
                return found
            parts = parts_of(urljoin(_address(parts), found))
        raise InputError(f"{_address(parts)} was not fetched: it was redirected more than {MAX_REDIRECTS} times.")

    async def _get(self, parts: SplitResult) -> Fetched | str:
        """Return the content of a URL, or the target of its redirect."""
        import httpcore2

        host, url = _ascii(parts.hostname or ""), _address(parts)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        proxy = self._proxy_for(parts.scheme, host)
        await self._check(host, port, through_proxy=bool(proxy))
        headers = [
            ("Host", parts.netloc.rpartition("@")[2] if host == parts.hostname else f"{host}:{port}"),
            ("User-Agent", f"codecompanion/{__version__}"),
            ("Accept", _ACCEPTED),
            ("Accept-Encoding", ACCEPT_ENCODING),
        ]
        limits = {"connect": CONNECT_LIMIT_S, "read": self._time_limit_s, "write": CONNECT_LIMIT_S, "pool": 1.0}
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        wanted = httpcore2.URL(scheme=parts.scheme, host=host, port=port, target=_quoted(target))
        async with (
            self._pool(proxy, parts.scheme) as pool,
            pool.stream("GET", wanted, headers=headers, extensions={"timeout": limits}) as response,
        ):
            given = Headers()
            for name, value in response.headers:
                given[name.decode("latin-1")] = value.decode("latin-1")
            location = given.get("location", "")
            if response.status in _REDIRECTS and location:
                return str(location)
            if not 200 <= response.status < 300:
                raise InputError(f"{url} was not fetched: the server answered {response.status}.")
            body = await _read(response, ", ".join(given.get_all("content-encoding", ())))
        content_type = given.get_content_type() if given.get("content-type") else ""
        return Fetched(url, body, content_type, given.get_content_charset("") or "")

    def _pool(self, proxy: str, scheme: str) -> httpcore2.AsyncConnectionPool:
        import httpcore2
        import httpx2

        tls = httpx2.create_ssl_context() if scheme == "https" or proxy.startswith("https") else None
        if not proxy:
            pool = httpcore2.AsyncConnectionPool(ssl_context=tls)
            backend: Any = _Checked(pool._network_backend, self._refuse)
            pool._network_backend = backend
            merge_chunks_of_pool(pool)
            return pool
        if not proxy.startswith(("http://", "https://")):
            raise InputError(f"Pages are fetched through HTTP proxies only, not through {proxy.partition(':')[0]}.")
        address, auth = _parts_of_proxy(proxy)
        return httpcore2.AsyncHTTPProxy(address, proxy_auth=auth, ssl_context=tls)

    def _proxy_for(self, scheme: str, host: str) -> str:
        """Return the proxy for a host: the configured proxy or else the system's ("" for none)."""
        if self._proxy:
            return self._proxy
        proxies = getproxies()
        proxy = proxies.get(scheme) or proxies.get("all") or ""
        return "" if not proxy or proxy_bypass(host) else proxy if "://" in proxy else f"http://{proxy}"

    async def _check(self, host: str, port: int, *, through_proxy: bool) -> None:
        """Refuse a host before anything is sent; the connection checks its address again.

        A proxy resolves the name itself, so names that are local or private here are never sent to a proxy.

        Raises:
            InputError: the host is refused or unknown.
        """
        addresses = await resolved(host, port)
        for address in addresses:
            if why := self._refuse(address):
                raise _refused(host, why, address)
        if not addresses and (not through_proxy or is_local_name(host)):
            raise InputError(f"{host} was not fetched: no address was found for this name.")


def _refused(host: str, why: str, address: Address) -> InputError:
    """Return the error for an address that is never fetched; no option allows it, but the error names a workaround."""
    return InputError(f"{host} is not fetched: it is {why} ({address}). Save the page and attach it with /file.")


def _parts_of_proxy(proxy: str) -> tuple[str, tuple[str, str] | None]:
    """Split a proxy URL into the URL without credentials, and the user name and password."""
    parts = urlsplit(proxy)
    bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], "", "", ""))
    return bare, (unquote(parts.username), unquote(parts.password or "")) if parts.username else None


def _address(parts: SplitResult) -> str:
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", parts.query, ""))


def _ascii(host: str) -> str:
    """Return a host name in the ASCII form that DNS uses.

    Raises:
        InputError: it is not a valid host name.
    """
    try:
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise InputError(f"{host} is not a server name.") from error


def _quoted(target: str) -> bytes:
    return quote(target, safe="%/:=&?~#+!$,;'@()*[]").encode("ascii")


def _why(error: Exception) -> str:
    """Describe a network error; TLS and proxy errors keep their own text."""
    import httpcore2

    text = str(error).rstrip(".")
    if isinstance(error, httpcore2.ConnectError) and "attempts failed" in text:
        return "the server cannot be reached"
    if isinstance(error, httpcore2.ReadError) or "closed connection" in text:
        return "the server closed the connection before the page was complete"
    return text or type(error).__name__


async def _read(response: httpcore2.Response, encoding: str) -> bytes:
    """Return a body, decompressed. Raises `LimitHit` and `Unreadable`."""
    body = bytearray()
    async with aclosing(bounded_pieces(response.aiter_stream(), PAGE, encoding)) as pieces:
        async for piece in pieces:
            body += piece
    return bytes(body)


class _Checked:
    """A network backend of httpcore2 that connects only to checked addresses, even if a name resolves again."""

    def __init__(self, inner: Any, refuse: Callable[[Address], str]) -> None:
        self._inner, self._refuse = inner, refuse

    async def connect_tcp(self, host: str, port: int, **options: Any) -> Any:
        import httpcore2

        addresses = await resolved(host, port)
        for address in addresses:
            if why := self._refuse(address):
                raise _refused(host, why, address)
        last: Exception = httpcore2.ConnectError(f"no address was found for {host}")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(str(address), port, **options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout, OSError) as error:
                last = error
        raise last

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
