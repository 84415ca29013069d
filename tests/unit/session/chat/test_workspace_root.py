"""The workspace of a chat: looked up on disk once per message."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codecompanion.session import services
from codecompanion.wire.requests import Snapshot
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit


async def test_the_rounds_of_a_tool_loop_do_not_look_up_the_workspace_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[Path] = []
    monkeypatch.setattr(services, "worked_in", looked_up.append)
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    read = [calls((f"c{number}", "read_file", '{"path": "a.txt"}')) for number in range(12)]
    bench = Bench(tmp_path, ScriptedAdapter("offline", [*read[:1], says("One."), *read[1:], says("Two.")]))
    session = await bench.open()
    session.submit(submit("hello", 1))
    await bench.idle(session)
    after_one_step = len(looked_up)
    looked_up.clear()
    session.submit(submit("hello", 2))
    await bench.idle(session)
    assert 0 < len(looked_up) <= after_one_step
    settings = session.services.settings
    anywhere = msgspec.structs.replace(settings.workspace, root="")
    session.services.settings = msgspec.structs.replace(settings, workspace=anywhere)
    for name in ("one", "other"):
        session.snapshot = Snapshot(cwd=str(tmp_path / name))
        assert session.root() == tmp_path / name
