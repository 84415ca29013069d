"""Lua modules have no cycles, and required modules and used members exist; `test_rooms.py` checks the rooms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lua_arrows import (
    arrows,
    circles,
    members,
    module_name,
    required_names,
    used_members,
)

REPO = Path(__file__).resolve().parents[2]
LUA = REPO / "lua"


def short(module: str) -> str:
    """Return a module's name without the name of the plugin."""
    return module.removeprefix("codecompanion").lstrip(".")


def test_lua_modules_have_no_cycles() -> None:
    """109 of 158 modules used to be one cycle, held together by inline requires; there must be none again."""
    assert [sorted(map(short, group)) for group in circles(arrows(LUA))] == []


def test_every_required_module_exists() -> None:
    """Most requires run long after startup, on a key or an event: a wrong name would only be found there."""
    known = set(arrows(LUA))
    files = [*LUA.rglob("*.lua"), *(REPO / "plugin").rglob("*.lua"), *(REPO / "ftplugin").rglob("*.lua")]
    wrong = [
        f"{path.relative_to(REPO)}:{line} {name}"
        for path in files
        for line, name, goes_on in required_names(path.read_text(encoding="utf-8"))
        if name.partition(".")[0] == "codecompanion"
        and not (any(module.startswith(name) for module in known) if goes_on else name in known)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('local x = require("codecompanion.x")', "codecompanion.x"),
        ('  return require("codecompanion.x").run()', "codecompanion.x"),
        ("foldtext = \"v:lua.require'codecompanion.x'.text()\"", "codecompanion.x"),
        ("return \"<Cmd>lua require('codecompanion.x').run()<CR>\"", "codecompanion.x"),
        ('local x = package.loaded["codecompanion.x"]', "codecompanion.x"),
        ('local ok, x = pcall(require, "codecompanion.x")', "codecompanion.x"),
    ],
)
def test_an_arrow_is_found_anywhere(source: str, name: str) -> None:
    """Inline requires are arrows too, and so are those in strings that Neovim evaluates."""
    assert required_names(source) == [(1, name, False)]


def test_a_comment_is_not_an_arrow() -> None:
    """Comments may name modules in a `require`."""
    assert required_names('---`require("codecompanion.x")` is the way\nlocal y = 1 -- require("codecompanion.x")') == []
    assert required_names('local y = "--" .. require("codecompanion.x")') == [(1, "codecompanion.x", False)]


def test_cycles_are_found() -> None:
    """The check reports a cycle through a third module, and none if arrows only meet."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_every_used_member_of_a_module_exists() -> None:
    """A moved function is missed by a key that is pressed once a month, not by a test."""
    given = {path: path.read_text(encoding="utf-8") for path in LUA.rglob("*.lua")}
    known = {module_name(path, LUA): members(source) for path, source in given.items()}
    more = [*(REPO / "plugin").rglob("*.lua"), *(REPO / "ftplugin").rglob("*.lua")]
    given |= {path: path.read_text(encoding="utf-8") for path in more}
    wrong = [
        f"{path.relative_to(REPO)}:{line} {module}.{member}"
        for path, source in given.items()
        for line, module, member in used_members(source)
        if (names := known.get(module)) is not None and member not in names
    ]
    assert not wrong, "\n".join(wrong)
