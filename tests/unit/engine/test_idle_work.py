"""What a host does while nothing runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from codecompanion.context.strategies import STRATEGIES
from codecompanion.engine import idle_work
from codecompanion.engine.idle_work import LATER, idle_steps, work_when_idle
from codecompanion.formats.deferred import Deferred
from codecompanion.tools.builtin import BUILTIN_TOOLS


async def test_steps_wait_until_the_host_is_idle_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that comes between two steps is not disturbed by the second one."""
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


def test_what_is_imported_while_idle_exists_and_the_files_come_last(tmp_path: Path) -> None:
    """A wrong name would be an error in the log of every host."""
    assert [name for name in LATER if find_spec(name) is None] == []
    assert len(list(idle_steps(tmp_path))) == len(LATER) + 2


def test_the_tools_of_every_chat_are_imported_while_idle() -> None:
    """The first call of one does not wait for its module; of the strategies, those of the default policy are there."""
    tools = {tool.run.module for tool in BUILTIN_TOOLS if isinstance(tool.run, Deferred)}
    assert tools - {*LATER} == {"codecompanion.tools.builtin.file_search"}  # grep_search imports it
    assert {one.run.module for one in STRATEGIES.values() if isinstance(one.run, Deferred)} & {*LATER}


def test_a_compaction_is_rehearsed_after_the_imports(tmp_path: Path) -> None:
    """It raises where the default policy is another one than it is made for."""
    rehearse = list(idle_steps(tmp_path))[len(LATER)]
    assert rehearse is idle_work._rehearse_compaction
    rehearse()
