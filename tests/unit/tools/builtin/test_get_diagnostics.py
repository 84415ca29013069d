"""`get_diagnostics`: the editor's answer to a request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codecompanion.tools.files.open_files import NoEditor
from codecompanion.wire.requests import Diagnostic
from tests.unit.tools.conftest import Call


class Says(NoEditor):
    """An editor with these diagnostics."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | None) -> None:
        self._diagnostics = diagnostics

    async def diagnostics(self) -> Sequence[Diagnostic] | None:
        return self._diagnostics


@pytest.fixture
def snapshot(root: Path) -> dict[str, Any]:
    diagnostics = (
        Diagnostic("b.py", 3, "WARN", "unused\n variable", "ruff"),
        Diagnostic(f"{root}/a.py", 9, "ERROR", "no such name"),
        Diagnostic("a.py", 2, "HINT", "could be shorter"),
    )
    return {"editor": Says(diagnostics)}


async def test_problems_are_listed_by_file_and_line(call: Call, snapshot: dict[str, Any]) -> None:
    output = await call("get_diagnostics", snapshot)
    assert output.text.splitlines() == [
        "a.py:2: hint: could be shorter",
        "a.py:9: error: no such name",
        "b.py:3: warning: unused variable [ruff]",
    ]
    assert output.summary == "3 problems"


async def test_a_path_and_a_severity_narrow_the_list(root: Path, call: Call, snapshot: dict[str, Any]) -> None:
    assert (await call("get_diagnostics", snapshot, path="a.py")).summary == "2 problems"
    assert (await call("get_diagnostics", snapshot, path=f"{root}/a.py", severity="warning")).summary == "1 problem"
    output = await call("get_diagnostics", snapshot, path="c.py")
    assert (output.text, output.is_error) == ("The editor reports no problems for c.py.", False)
    assert (await call("get_diagnostics", snapshot, path="../x")).is_error


async def test_a_silent_editor_is_reported(call: Call) -> None:
    output = await call("get_diagnostics", {"editor": Says(None)})
    assert (output.text, output.is_error) == ("The editor did not answer in time.", True)
