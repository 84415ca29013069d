"""The host's handling of the completion requests."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.engine.runtime import Runtime
from codecompanion.wire.requests import CancelCompletion, CompleteCode, Hello
from tests.patience import PATIENCE_S
from tests.providers.completion.server import FillServer
from tests.providers.loopback.answers import silence


def as_sent(found: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(found))


async def greeted(root: Path, url: str) -> Runtime:
    runtime = Runtime(lambda event: None)
    folders = {"data_dir": str(root), "cache_dir": str(root), "state_dir": str(root), "log_path": str(root / "log")}
    await runtime.handle(Hello(settings={"completion": {"url": url}}, nvim="0.11", **folders))
    return runtime


async def test_a_host_completes_without_a_chat_and_cancels(tmp_path):
    async with FillServer(["foo()", silence()]) as server:
        runtime = await greeted(tmp_path, server.address)
        found = await runtime.handle(CompleteCode(id=3, path="a.py", before="x = ", after="\n"))
        told = as_sent(found)
        assert set(told) == {"items", "model", "ms", "cached", "why", "failed", "off", "stopped", "address"}
        assert told["items"] == [{"text": "foo()"}]
        running = asyncio.ensure_future(runtime.handle(CompleteCode(id=4, path="a.py", before="y = ")))
        await server.wait_until(lambda: len(server.requests) == 2)
        await runtime.handle(CancelCompletion(of=4))
        assert as_sent(await running)["items"] == []
        await server.wait_until(lambda: server.requests[1].aborted)
        await runtime.aclose()


async def test_a_new_greeting_cancels_requests_and_applies_the_new_settings(tmp_path):
    async with FillServer([silence()]) as old, FillServer(["new()"]) as new:
        runtime = await greeted(tmp_path, old.address)
        running = asyncio.ensure_future(runtime.handle(CompleteCode(path="a.py", before="y = ")))
        await old.wait_until(lambda: len(old.requests) == 1)
        folders = {"data_dir": str(tmp_path), "cache_dir": "", "log_path": str(tmp_path / "log")}
        await runtime.handle(Hello(settings={"completion": {"url": new.address}}, nvim="0.11", **folders))
        assert as_sent(await running)["items"] == []
        found = await runtime.handle(CompleteCode(path="a.py", before="y = "))
        assert as_sent(found)["items"] == [{"text": "new()"}]
        await runtime.aclose()


@pytest.mark.slow("indexes a project in a process of its own")
async def test_a_project_is_indexed_in_the_background_and_its_signatures_added(tmp_path):
    """The first suggestions do not wait for the index.

    Once the worker has finished, the prompt includes other files.
    """
    root = tmp_path / "demo"
    (root / ".git").mkdir(parents=True)
    (root / "far" / "away").mkdir(parents=True)
    (root / "far" / "away" / "store.py").write_text("def open_store(path: str, *, is_new: bool = False): ...\n")
    before = "from far.away.store import open_store\n\nstore = open_store("
    async with FillServer() as server:
        runtime = await greeted(tmp_path, server.address)
        request = CompleteCode(path=str(root / "new.py"), before=before, after="\n", cwd=str(root), line=2)
        await runtime.handle(request)
        assert "is_new" not in server.requests[0].json["prompt"]
        indexes = runtime.services.indexes
        assert indexes is not None
        index = await indexes.of(root)
        async with asyncio.timeout(PATIENCE_S):
            while index.state.phase != "ready":
                await index.wait()
                await asyncio.sleep(0)
        elsewhere = msgspec.structs.replace(request, before=before.replace("store =", "other ="))
        await runtime.handle(elsewhere)
        assert "def open_store(path: str, *, is_new: bool = False)" in server.requests[1].json["prompt"]
        await runtime.aclose()
