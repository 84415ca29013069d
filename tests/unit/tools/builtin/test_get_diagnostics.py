"""`get_diagnostics`: from the editor's snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codecompanion.wire.requests import Diagnostic, Snapshot
from tests.unit.tools.conftest import Call


@pytest.fixture
def snapshot(root: Path) -> dict[str, Any]:
    diagnostics = (
        Diagnostic("b.py", 3, "WARN", "unused\n variable", "ruff"),
        Diagnostic(f"{root}/a.py", 9, "ERROR", "no such name"),
        Diagnostic("a.py", 2, "HINT", "could be shorter"),
    )
    return {"snapshot": Snapshot(cwd=str(root), diagnostics=diagnostics)}


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
