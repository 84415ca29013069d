"""The proxy of a sandbox: listed hosts are reachable; all other requests are refused, recorded and not forwarded."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codecompanion.settings_sections import SandboxSettings
from codecompanion.tools.commands.process import Ended, run_program
from codecompanion.tools.sandbox import host_proxy
from codecompanion.tools.sandbox.host_proxy import HostProxy
from codecompanion.tools.sandbox.sandbox import PYTHON, Sandbox


class Upstream:
    """A server outside the sandbox that records its input and answers with `body`."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.body = b"from outside"
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(self.body))
        writer.write(self.body)
        await writer.drain()
        writer.close()


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    made = Upstream()
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()


async def ask(proxy: HostProxy, request: bytes) -> bytes:
    """Return the proxy's whole answer to one request."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    await proxy.serve(listener)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    writer.write_eof()
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
        await proxy.close()


def connect(target: str) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()


async def test_a_listed_host_is_reached_through_a_tunnel_and_plainly(upstream: Upstream) -> None:
    place = f"127.0.0.1:{upstream.port}"
    tunnelled = await ask(HostProxy([place]), connect(place) + b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
    assert tunnelled.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
    assert tunnelled.endswith(b"from outside")
    plain = await ask(
        HostProxy([place]),
        f"GET http://{place}/b?c=1 HTTP/1.1\r\nHost: {place}\r\nProxy-Authorization: x\r\n\r\n".encode(),
    )
    assert plain.endswith(b"from outside")
    assert upstream.heads == [
        b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
        f"GET /b?c=1 HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n".encode(),
    ]


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("evil.example:443", "evil.example"),
        ("pypi.org.evil.example:443", "pypi.org.evil.example"),
        ("evil.example:8443", "evil.example:8443"),
        ("pypi.org:22", "pypi.org:22"),
        ("pypi.org@evil.example:443", "evil.example"),
        ("EVIL.example.:443", "evil.example"),
        ("[::1]:443", "[::1]"),
        ("2130706433:80", "2130706433"),
    ],
)
async def test_everything_else_is_refused_and_remembered(target: str, named: str) -> None:
    proxy = HostProxy(["pypi.org"])
    answer = await ask(proxy, connect(target))
    assert answer.startswith(b"HTTP/1.1 403 Forbidden")
    assert named.encode() in answer
    assert proxy.refused == (named,)


async def test_the_request_address_decides_not_the_host_header(upstream: Upstream) -> None:
    proxy = HostProxy(["pypi.org"])
    place = f"127.0.0.1:{upstream.port}"
    answer = await ask(proxy, f"GET http://{place}/ HTTP/1.1\r\nHost: pypi.org\r\n\r\n".encode())
    assert (answer[:12], upstream.heads) == (b"HTTP/1.1 403", [])


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "0"])
async def test_a_listed_name_that_resolves_to_this_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, address: str
) -> None:
    async def lies(_host: str, _port: int) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...]:
        return (ipaddress.ip_address(int(address) if address == "0" else address),)

    monkeypatch.setattr(host_proxy, "_addresses", lies)
    answer = await ask(HostProxy([f"pypi.org:{upstream.port}"]), connect(f"pypi.org:{upstream.port}"))
    assert (answer[:12], upstream.heads) == (b"HTTP/1.1 502", [])


@pytest.mark.parametrize(
    "request_bytes",
    [b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n", b"CONNECT a b:1 HTTP/1.1\r\n\r\n"],
)
async def test_a_malformed_request_gets_an_answer(request_bytes: bytes) -> None:
    assert (await ask(HostProxy(["pypi.org"]), request_bytes)).startswith(b"HTTP/1.1 400")


async def test_a_head_without_an_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await ask(HostProxy(["pypi.org"]), b"GET " + b"a" * 2_000_000) == b""
    monkeypatch.setattr(host_proxy, "_HEAD_S", 0.05)
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = HostProxy(["pypi.org"])
    await proxy.serve(listener)
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(b"CONNECT ")
    assert await reader.read() == b""
    writer.close()
    await proxy.close()


async def test_a_large_reply_arrives_whole(upstream: Upstream) -> None:
    upstream.body = b"0123456789abcdef" * 2_000_000
    place = f"127.0.0.1:{upstream.port}"
    answer = await ask(HostProxy([place]), connect(place) + b"GET / HTTP/1.1\r\n\r\n")
    assert answer.endswith(upstream.body)


@pytest.mark.parametrize("kind", ["bubblewrap", "namespaces"])
async def test_a_command_reaches_the_listed_host_alone(kind: str, tmp_path: Path, upstream: Upstream) -> None:
    settings = SandboxSettings(mode="auto", write=(), read=(), network=False)
    sandbox = Sandbox(settings, tmp_path / "private", kinds=(kind,))  # type: ignore[arg-type]
    if not sandbox.kind:
        pytest.skip(f"no sandbox of the kind {kind} here: {sandbox.why_none()}")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    script = """
import os, socket, sys, urllib.request
port = sys.argv[1]
del os.environ["no_proxy"], os.environ["NO_PROXY"]
print(urllib.request.urlopen(f"http://127.0.0.1:{port}/").read().decode())
for attempt in (
    lambda: urllib.request.urlopen("http://refused.example/"),
    lambda: socket.create_connection(("127.0.0.1", int(port)), 2),
):
    try:
        attempt()
        print("got out")
    except OSError as error:
        print(type(error).__name__)
"""
    argv, output = [PYTHON, "-I", "-S", "-c", script, str(upstream.port)], bytearray()
    proxy = HostProxy([f"127.0.0.1:{upstream.port}"])
    ended = await run_program(
        argv,
        cwd=workspace,
        env={"PATH": "/usr/bin:/bin"},
        on_output=output.extend,
        limit_s=30,
        confine=lambda pipes: sandbox.confine(argv, workspace, workspace, {"PATH": "/usr/bin"}, pipes, network=False),
        proxy=proxy,
    )
    assert output.decode().split("\n") == ["from outside", "HTTPError", "ConnectionRefusedError", ""]
    assert (ended, proxy.refused) == (Ended(0), ("refused.example",))
