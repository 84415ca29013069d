"""A listener that records a server's actions, and a way to connect to the hostile server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from codecompanion.mcp.server_connection import Connection
from codecompanion.mcp.server_spec import ServerSpec
from codecompanion.mcp.server_types import ElicitationRequest, Refused, SamplingReply, SamplingRequest
from tests.patience import PATIENCE_S

HOSTILE = Path(__file__).with_name("hostile.py")


class Listener:
    """Grants nothing."""

    def __init__(self) -> None:
        self.logs: list[str] = []
        self.changes = 0
        self.ended: list[str] = []

    async def on_changed(self) -> None:
        self.changes += 1

    def on_log(self, level: str, text: str) -> None:
        self.logs.append(f"{level}: {text}")

    def on_ended(self, problem: str) -> None:
        self.ended.append(problem)

    def roots(self) -> Sequence[str]:
        return ()

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        raise Refused("no")

    async def elicit(self, request: ElicitationRequest) -> dict[str, Any] | None:
        raise Refused("no")


def spec(*ways: str, **more: Any) -> ServerSpec:
    """Return a specification that starts the hostile server with these misbehaviours."""
    more = {"start_timeout_s": PATIENCE_S, "timeout_s": PATIENCE_S, **more}
    return ServerSpec(name="hostile", command=(sys.executable, str(HOSTILE), *ways), **more)


def connection(one: ServerSpec, listener: Listener, record: Path | None = None, **more: str) -> Connection:
    """Return a connection that is not open yet; `more` is added to the server's environment."""
    env = {**os.environ, **({"RECORD": str(record)} if record else {}), **more}
    return Connection(one, env, listener)


@contextlib.asynccontextmanager
async def connected(
    *ways: str, listener: Listener | None = None, record: Path | None = None, **more: Any
) -> AsyncIterator[Connection]:
    """Yield an open connection to the hostile server over stdio, whose process ends afterwards."""
    one = connection(spec(*ways, **more), listener or Listener(), record)
    await one.open()
    try:
        yield one
    finally:
        await one.close()


@contextlib.asynccontextmanager
async def over_http(
    *ways: str, record: Path | None = None, headers: Any = None, **more: Any
) -> AsyncIterator[Connection]:
    """Yield an unopened connection to the hostile server over HTTP."""
    env = {**os.environ, **({"RECORD": str(record)} if record else {})}
    server = await asyncio.create_subprocess_exec(
        sys.executable, str(HOSTILE), "--http", *ways, stdout=asyncio.subprocess.PIPE, env=env
    )
    assert server.stdout is not None
    port = int(await server.stdout.readline())
    more = {"start_timeout_s": PATIENCE_S, "timeout_s": PATIENCE_S, **more}
    one = Connection(
        ServerSpec(name="hostile", url=f"http://127.0.0.1:{port}/mcp", headers=headers or {}, **more), {}, Listener()
    )
    try:
        yield one
    finally:
        await one.close()
        server.kill()
        await server.communicate()


def recorded(path: Path) -> list[dict[str, Any]]:
    """Return the messages and process ids recorded by the server."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until the condition is true."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while not is_so():
        assert asyncio.get_running_loop().time() < deadline, f"there was never {what}"
        await asyncio.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Return whether the process is running; an unreaped zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter: it ended between opening and reading
        return False
