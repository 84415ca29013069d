"""An HTTP proxy that is the only network access of a sandboxed command, limited to a list of hosts.

The launcher opens the listening socket in the sandbox's network, where only this proxy is reachable, and sends it to
the host. The proxy forwards `CONNECT host:port` and plain `http://` requests without inspecting their content. It
refuses a listed name that resolves to this machine or to a metadata service, because DNS can point a name anywhere. It
resolves each name once per command.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Iterable
from typing import Final

from codecompanion.formats.addresses import PRIVATE, Address, resolved, why_refused
from codecompanion.formats.regex import regex
from codecompanion.tools.commands.network import is_of_this_machine

MAX_CONNECTIONS = 128
"""Maximum number of connections; each uses two of the host's file descriptors, which are often limited to 1,024."""
MAX_LOOKUPS = 2
"""Maximum number of concurrent lookups: each blocks one of the threads that the whole host shares."""
MAX_REFUSED = 10
"""Maximum number of refused hosts remembered for the next question."""
_MAX_HEAD_BYTES = 64 * 1024
_HEAD_S = 30.0
_CONNECT_S = 30.0
_CHUNK_BYTES = 64 * 1024
_PORTS: Final = (80, 443)
MAX_PORT: Final = 65_535
_REQUEST = regex(rb"(?s)([A-Z]{1,20}) (\S{1,8000}) (HTTP/1\.[01])\r\n(.*)")
_TARGET = regex(r"(?ai)(?:http://)?(?:[^/@\s]{0,200}@)?(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::(\d{1,5}))?(/\S*)?")
HOST = regex(r"(?ai)(?:\[[0-9a-f:.]{2,45}\]|(?!-)[a-z0-9._-]{1,253})(?::[1-9]\d{0,4})?")
"""Matches a host as written in a list: `pypi.org` (ports 80 and 443), `pypi.corp:8443`."""


class HostProxy:
    """The proxy of one command. `refused` lists the requested hosts that are not in `hosts`.

    `unreachable` lists the members of `hosts` that did not answer; more access would not help the command reach them.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        self.hosts = frozenset(_without_last_dot(host.lower()) for host in hosts)
        self._refused: dict[str, None] = {}
        self._unreachable: dict[str, None] = {}
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._lookups = asyncio.Semaphore(MAX_LOOKUPS)
        self._addresses: dict[str, tuple[Address, ...]] = {}

    @property
    def refused(self) -> tuple[str, ...]:
        """Return the refused hosts in the order in which they were first requested."""
        return tuple(self._refused)

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Return the listed hosts that did not answer, in the order in which they were first requested."""
        return tuple(self._unreachable)

    @property
    def not_proxied(self) -> str:
        """Return the command's `NO_PROXY` value: localhost is the sandbox's own, unless localhost is a listed host."""
        return "" if any(map(is_of_this_machine, self.hosts)) else "localhost,127.0.0.1,::1"

    async def serve(self, listener: socket.socket) -> None:
        """Accept connections on the sandbox's socket until `close`."""
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=_MAX_HEAD_BYTES)

    async def close(self) -> None:
        """Close every connection."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._running) >= MAX_CONNECTIONS:
            writer.close()
            return
        task = asyncio.create_task(self._serve_one(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._pass_on(reader, writer)
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the command sees a closed connection
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        request = _REQUEST.fullmatch(head)
        target = _TARGET.fullmatch(request[2].decode("latin-1")) if request else None
        if request is None or target is None or int(target[2] or 1) > MAX_PORT:
            await _answer(writer, "400 Bad Request", "This proxy accepts only CONNECT and http:// requests.")
            return
        is_tunnel, host = request[1] == b"CONNECT", target[1].lower().rstrip(".")
        port = int(target[2] or (443 if is_tunnel else 80))
        if not self._is_listed(host, port):
            name = host if port in _PORTS else f"{host}:{port}"
            if len(self._refused) < MAX_REFUSED:
                self._refused[name] = None
            await _answer(writer, "403 Forbidden", f"The sandbox does not allow this command to reach {name}.")
            return
        outer = await self._connect(host, port)
        if outer is None:
            self._unreachable[host if port in _PORTS else f"{host}:{port}"] = None
            await _answer(writer, "502 Bad Gateway", f"{host} cannot be reached.")
            return
        from_outside, to_outside = outer
        try:
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                to_outside.write(b"%s %s %s\r\n" % (request[1], (target[3] or "/").encode("latin-1"), request[3]))
                to_outside.write(_without_proxy_headers(request[4]))
            await asyncio.gather(_copy(reader, to_outside), _copy(from_outside, writer))
        finally:
            to_outside.close()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect to the first allowed address of a listed host that answers; return None if there is none."""
        bare = host.strip("[]")
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(bare)
            return await _open(bare, port)  # the user allowed exactly this address
        if is_of_this_machine(bare):  # or exactly this name
            return await _open(bare, port)
        for address in await self._addresses_of(bare, port):
            if not _is_own_or_metadata(address) and (opened := await _open(str(address), port)) is not None:
                return opened
        return None

    async def _addresses_of(self, host: str, port: int) -> tuple[Address, ...]:
        async with self._lookups:
            found = self._addresses.get(host) or await resolved(host, port)
            self._addresses[host] = found
            return found

    def _is_listed(self, host: str, port: int) -> bool:
        return f"{host}:{port}" in self.hosts or (port in _PORTS and host in self.hosts)


def _without_proxy_headers(headers: bytes) -> bytes:
    """Return the request headers for the server, without proxy headers and with one request per connection."""
    lines = [line for line in headers.split(b"\r\n") if line]
    kept = [line for line in lines if not line.lower().startswith((b"proxy-", b"connection:"))]
    return b"\r\n".join([*kept, b"Connection: close"]) + b"\r\n\r\n"


async def _answer(writer: asyncio.StreamWriter, status: str, sentence: str) -> None:
    body = f"{sentence}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


def _without_last_dot(host: str) -> str:
    """Return a listed host without the dot at the end of its name: `pypi.org.:8443` is `pypi.org:8443`."""
    name, colon, port = host.partition(":")
    return host if host.startswith("[") else f"{name.rstrip('.')}{colon}{port}"


def _is_own_or_metadata(address: Address) -> bool:
    """Return whether an address belongs to this machine or a metadata service, or does not denote a single machine."""
    if why_refused(address) not in ("", PRIVATE):
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    # Nothing is sent: the kernel picks the source address, which equals the target only on this machine.
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((str(address), 9))
        return bool(probe.getsockname()[0] == str(address))
    return False


async def _open(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_CONNECT_S):
            return await asyncio.open_connection(address, port)
    return None


async def _copy(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    """Copy bytes as fast as the receiver accepts them, then forward end-of-file; an error ends both directions."""
    while chunk := await source.read(_CHUNK_BYTES):
        to.write(chunk)
        await to.drain()
    if to.can_write_eof():
        to.write_eof()
