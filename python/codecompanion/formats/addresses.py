"""Decides which URLs may be fetched: http(s) on the public internet, never on this machine or its networks.

Every IP address that a host name resolves to is checked, and the connection is made to the checked address, so that the
name cannot point elsewhere a moment later. An IPv4 address embedded in an IPv6 address is checked as well.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit

from codecompanion.errors import InputError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL_CHARS = 4_000
_METADATA = frozenset({"168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"})
"""Cloud metadata services with addresses that are not link-local: Azure, Alibaba, Oracle, AWS."""
PRIVATE = "a private address"
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOCAL_NAMES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet", ".corp", ".home")


def parts_of(url: str) -> SplitResult:
    """Return the parts of a URL if it may be fetched, without resolving its host name.

    Raises:
        InputError: the URL is not http(s), or contains a password; the message says which.
    """
    text = url.strip()
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise InputError(f"{_shown(text)} is not an address: {error}.") from error
    if len(text) > MAX_URL_CHARS or any(character.isspace() or ord(character) < 32 for character in text):
        raise InputError(f"{_shown(text)} is not an address: it is too long, or contains spaces.")
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise InputError(f"{_shown(text)} cannot be fetched; expected an address such as https://example.org/page.")
    if parts.username is not None or parts.password is not None:
        raise InputError(f"Addresses with a user name or password are not fetched: {parts.scheme}://…@{host}.")
    return parts


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:79] + "…")


def why_refused(address: Address) -> str:
    """Return the reason why an address is never fetched (its type), or "" if it may be fetched."""
    inner = _inner(address)
    if inner is not None:
        return why_refused(inner)
    if address.is_loopback:
        return "this machine itself"
    if address.is_link_local or str(address) in _METADATA:
        return "a link-local or metadata address"
    if address.is_multicast or address.is_unspecified or address.is_reserved:
        return "not the address of a single machine"
    return "" if address.is_global else PRIVATE


def _inner(address: Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address, or None."""
    if not isinstance(address, ipaddress.IPv6Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


def is_local_name(host: str) -> bool:
    """Return whether a name belongs to a local network, so that only a proxy could resolve it."""
    bare = host.rstrip(".").lower()
    return bare == "localhost" or "." not in bare or bare.endswith(_LOCAL_NAMES)


async def resolved(host: str, port: int) -> tuple[Address, ...]:
    """Resolve a name; return its addresses, which may be none."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))
