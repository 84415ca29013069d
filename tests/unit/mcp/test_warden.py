"""No server outlives its starter, however the starter ends and whatever the server tries."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.listener import HOSTILE, connected, is_alive, recorded, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked up in /proc")

HOST = """
import asyncio, os, sys
from codecompanion.mcp.server_connection import Connection
from codecompanion.mcp.server_spec import ServerSpec
from tests.mcp.listener import Listener, spec
async def main():
    one = Connection(spec(*sys.argv[1:]), dict(os.environ), Listener())
    await one.open()
    print("open", flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""


def pids(record: Path) -> list[int]:
    return [one["pid"] for one in recorded(record) if "pid" in one]


async def test_closing_ends_the_server_and_its_children(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with connected("spawn", "deaf", record=record):
        await until(lambda: len(pids(record)) == 3, "its processes")
        assert all(map(is_alive, pids(record)))
    assert not any(map(is_alive, pids(record)))


@pytest.mark.slow("waits for the end of processes")
@pytest.mark.parametrize("ways", [(), ("deaf",), ("spawn", "deaf")], ids=["plain", "deaf", "daemons"])
async def test_a_killed_host_ends_its_servers(tmp_path: Path, ways: tuple[str, ...]) -> None:
    record = tmp_path / "record"
    host = await _host(record, ways)
    ours = [*pids(record), *_servers(host.pid)]
    assert len(ours) >= 2
    assert all(map(is_alive, ours))
    host.send_signal(signal.SIGKILL)
    await host.wait()
    await until(lambda: not any(map(is_alive, ours)), "the end of all processes")


async def test_a_killed_warden_ends_its_server(tmp_path: Path) -> None:
    host = await _host(tmp_path / "record", ("deaf",))
    supervisor, server = _servers(host.pid)
    os.kill(supervisor, signal.SIGKILL)
    await until(lambda: not is_alive(server), "the end of the server")
    host.kill()
    await host.wait()


async def _host(record: Path, ways: tuple[str, ...]) -> asyncio.subprocess.Process:
    root = str(HOSTILE.parents[2])
    env = {**os.environ, "RECORD": str(record), "PYTHONPATH": f"{root}/python:{root}"}
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST, *ways, stdout=subprocess.PIPE, env=env, start_new_session=True
    )
    assert host.stdout is not None
    assert await host.stdout.readline() == b"open\n"
    return host


def _servers(host: int) -> list[int]:
    """Return the process ids of the supervisor and its server."""

    def children(pid: int) -> list[int]:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]

    supervisor = children(host)
    return [*supervisor, *children(supervisor[0])[:1]]
