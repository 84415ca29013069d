"""The proxy of a sandbox: listed hosts are reachable; all other requests are refused, recorded and not forwarded."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from codecompanion.settings_sections import SandboxSettings
from codecompanion.tools.process import Ended, run_program
from codecompanion.tools.sandbox import host_proxy
from codecompanion.tools.sandbox.host_proxy import HOST, HostProxy
from codecompanion.tools.sandbox.sandbox import PYTHON, Sandbox
from tests.patience import PATIENCE_S


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


def own_address() -> str:
    """Return the address of this machine in its network, "" = there is none."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return ""


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
async def test_everything_else_is_refused_and_recorded(target: str, named: str) -> None:
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


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "0", "64:ff9b::7f00:1", "2002:7f00:1::",
        "100.100.100.200", "fd00:ec2::254", "192.0.0.192", "own",
    ],
)  # fmt: skip
async def test_a_listed_name_that_leads_to_this_machine_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, address: str
) -> None:
    given = {"0": str(ipaddress.ip_address(0)), "own": own_address()}.get(address, address)
    if not given:
        pytest.skip("this machine has no address of a network")

    async def lies(_host: str, _port: int) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...]:
        return (ipaddress.ip_address(given),)

    async def reached(to: str, _port: int) -> None:
        pytest.fail(f"{to} was reached")

    monkeypatch.setattr(host_proxy, "resolved", lies)
    monkeypatch.setattr(host_proxy, "_open", reached)
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


async def test_a_large_reply_arrives_complete(upstream: Upstream) -> None:
    upstream.body = b"0123456789abcdef" * 2_000_000
    place = f"127.0.0.1:{upstream.port}"
    answer = await ask(HostProxy([place]), connect(place) + b"GET / HTTP/1.1\r\n\r\n")
    assert answer.endswith(upstream.body)


async def test_slow_name_lookups_do_not_delay_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a network each lookup takes seconds, and an installer opens dozens of connections."""
    real, begun, release = socket.getaddrinfo, threading.Semaphore(0), threading.Event()

    def slow(host: str, *rest: Any, **named: Any) -> Any:
        if host == "slow.example":
            begun.release()
            release.wait(PATIENCE_S)
            raise socket.gaierror
        return real(host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = HostProxy(["slow.example"])
    await proxy.serve(listener)
    opened = [await asyncio.open_connection(*listener.getsockname()) for _ in range(40)]
    for _, writer in opened:
        writer.write(connect("slow.example:443"))
    async with asyncio.timeout(PATIENCE_S / 2):
        for _ in range(host_proxy.MAX_LOOKUPS):
            while not begun.acquire(blocking=False):  # noqa: ASYNC110 - a thread tells it
                await asyncio.sleep(0.01)
        assert not await asyncio.to_thread(release.is_set)
    release.set()
    await proxy.close()
    for _, writer in opened:
        writer.close()
    assert caplog.records == []


async def test_a_name_is_resolved_once_for_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the second answer would be another address."""
    asked, opened = list[str](), list[str]()

    async def resolved(host: str, _port: int) -> tuple[ipaddress.IPv4Address, ...]:
        asked.append(host)
        return (ipaddress.IPv4Address(f"198.51.100.{len(asked)}"),)

    async def reached(to: str, _port: int) -> None:
        opened.append(to)

    monkeypatch.setattr(host_proxy, "resolved", resolved)
    monkeypatch.setattr(host_proxy, "_open", reached)
    proxy = HostProxy(["pypi.org"])
    for _ in range(3):
        await ask(proxy, connect("pypi.org:443"))
    assert (asked, set(opened)) == (["pypi.org"], {"198.51.100.1"})


async def test_a_connection_dropped_by_the_command_is_closed(upstream: Upstream) -> None:
    """A silent server would keep it until the command ends, and connections are limited."""
    place, listener = f"127.0.0.1:{upstream.port}", socket.create_server(("127.0.0.1", 0))
    proxy = HostProxy([place])
    await proxy.serve(listener)
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(connect(place) + b"half a head")
    assert b"200" in await reader.readuntil(b"\r\n\r\n")
    writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    [running] = proxy._running
    await asyncio.wait_for(running, 5)
    await proxy.close()


@pytest.mark.parametrize("port", [65_536, 99_999])
async def test_an_invalid_port_is_refused(port: int) -> None:
    answer = await ask(HostProxy([f"127.0.0.1:{port}"]), connect(f"127.0.0.1:{port}"))
    assert answer.startswith(b"HTTP/1.1 400")


async def test_a_host_with_a_trailing_dot_is_listed_too(upstream: Upstream) -> None:
    proxy = HostProxy(["PyPI.org.", "pypi.corp.:8443"])
    assert proxy.hosts == {"pypi.org", "pypi.corp:8443"}


@pytest.mark.parametrize(
    "host", ["pyp\u0131.org", "\u017fpam.org", "\u212aeep.org", "pypi.org:8\u06643", "-x.org", "a b"]
)
def test_a_lookalike_of_a_host_is_not_one(host: str) -> None:
    assert not HOST.fullmatch(host)


@pytest.mark.parametrize("kind", ["bubblewrap", "namespaces"])
async def test_a_command_reaches_the_listed_host_alone(kind: str, tmp_path: Path, upstream: Upstream) -> None:
    settings = SandboxSettings(mode="auto", write=(), read=(), network=False)
    sandbox = Sandbox(settings, tmp_path / "private", kinds=(kind,))  # type: ignore[arg-type]
    if not sandbox.kind:
        pytest.skip(f"no sandbox of the kind {kind} here: {sandbox.why_none()}")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    script = """
import socket, sys, urllib.request
port = sys.argv[1]
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
