"""The work of an idle host."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest

from codecompanion.context.strategies import STRATEGIES
from codecompanion.engine import idle_work, runtime
from codecompanion.engine.idle_work import LATER, idle_steps, work_when_idle
from codecompanion.formats.deferred import Deferred
from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.wire.requests import Hello, OpenChat, Snapshot, Submit
from tests.patience import PATIENCE_S


async def test_each_step_waits_until_the_host_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message between two steps is not delayed by the second one."""
    monkeypatch.setattr(idle_work, "QUIET_S", 0)
    busy, done = [False, True, True, False, False], []

    def is_busy() -> bool:
        done.append("looked")
        return busy.pop(0)

    def fail() -> None:
        done.append("failed")
        raise OSError("too many open files")

    await work_when_idle(is_busy, [lambda: done.append("first"), fail, lambda: done.append("last")])
    assert done == ["looked", "first", "looked", "looked", "looked", "failed", "looked", "last"]


def test_modules_imported_while_idle_exist_and_the_files_come_last(tmp_path: Path) -> None:
    """A wrong name would cause an error in every host's log."""
    assert [name for name in LATER if find_spec(name) is None] == []
    assert len(list(idle_steps(tmp_path))) == len(LATER) + 2


def test_the_tools_of_every_chat_are_imported_while_idle() -> None:
    """The first call of a tool does not wait for its module.

    Of the strategies, only the default policy's are imported.
    """
    tools = {tool.run.module for tool in BUILTIN_TOOLS if isinstance(tool.run, Deferred)}
    assert tools - {*LATER} == {"codecompanion.tools.builtin.file_search"}  # grep_search imports it
    assert {one.run.module for one in STRATEGIES.values() if isinstance(one.run, Deferred)} & {*LATER}


def test_a_compaction_is_rehearsed_after_the_imports(tmp_path: Path) -> None:
    """The rehearsal fails if the default policy differs from the one it was written for."""
    rehearse = list(idle_steps(tmp_path))[len(LATER)]
    assert rehearse is idle_work._rehearse_compaction
    rehearse()


async def test_bytecode_is_stored_after_the_first_turn_of_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before that, the modules needed by a request were not imported yet."""
    waited, kept = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in ("QUIET_S", "LONG_QUIET_S"):
        monkeypatch.setattr(runtime, name, 0.0)
    monkeypatch.setattr(runtime, "idle_steps", lambda data_dir: [lambda: loop.call_soon_threadsafe(waited.set)])
    monkeypatch.setattr(runtime, "keep_modules", lambda: loop.call_soon_threadsafe(kept.set))
    host, root = runtime.Runtime(lambda event: None), str(tmp_path)
    settings = {"rules": {"enabled": False}, "chat": {"adapter": "offline"}}
    folders = {"data_dir": root, "cache_dir": root, "state_dir": root, "log_path": f"{root}/log"}
    assert await host.handle(Hello(settings=settings, nvim="0.11", **folders)) == []
    await host.handle(OpenChat(chat="c", snapshot=Snapshot(cwd=root)))
    async with asyncio.timeout(PATIENCE_S):
        await waited.wait()
        await asyncio.sleep(0.05)
        assert not kept.is_set()
        await host.handle(Submit(chat="c", text="Hello", snapshot=Snapshot(cwd=root), submit_id=1))
        await kept.wait()
    await host.aclose()
