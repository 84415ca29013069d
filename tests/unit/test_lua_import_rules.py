"""No circle of Lua modules, and what is required and used of a module exists; `test_rooms.py` checks the rooms."""

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


def test_no_circles() -> None:
    """109 of 158 modules were one circle, held together by inline requires; none may be in one again."""
    assert [sorted(map(short, group)) for group in circles(arrows(LUA))] == []


def test_every_required_module_exists() -> None:
    """Most requires run long after start-up, on a key or an event: a wrong name would be found there."""
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
def test_an_arrow_is_found_wherever_it_stands(source: str, name: str) -> None:
    """Inline requires are arrows too, and so are those in strings that Neovim evaluates."""
    assert required_names(source) == [(1, name, False)]


def test_a_comment_is_no_arrow() -> None:
    """Documentation names modules."""
    assert required_names('---`require("codecompanion.x")` is the way\nlocal y = 1 -- require("codecompanion.x")') == []
    assert required_names('local y = "--" .. require("codecompanion.x")') == [(1, "codecompanion.x", False)]


def test_circles_are_found() -> None:
    """The negative of the check: a circle by way of a third module, and none where arrows only meet."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_every_member_that_is_used_of_a_module_exists() -> None:
    """A function that moved to another module is missed by a key that is pressed once a month, not by a test."""
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
