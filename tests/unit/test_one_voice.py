"""Every message from the Lua side goes through `codecompanion.say`, with a severity of `codecompanion.severity`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LUA = Path(__file__).resolve().parents[2] / "lua" / "codecompanion"
VOICE = {"say.lua", "severity.lua", "types.lua"}
OWN_WAYS = re.compile(r"vim\.notify(?:_once)?\(|nvim_echo\(|nvim_err_write|vim\.log\.levels|vim\.print\(")
STRINGS = re.compile(r"""(?:say\.\w+|\.notice)\([^\n]*,\s*"(?:error|warning|info|warn)"\)""")
SOURCES = sorted(path for path in LUA.rglob("*.lua") if path.name not in VOICE)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(LUA)))
def test_no_module_prints_directly(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("--")]
    found = [line.strip() for line in lines if (OWN_WAYS.search(line) and "`vim.notify()`" not in line)]
    assert not found
    assert not [line.strip() for line in lines if STRINGS.search(line)], "a severity by hand"
