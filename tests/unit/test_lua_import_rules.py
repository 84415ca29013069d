"""Lua rooms require only the rooms that `doc/dev/rooms.md` lists above them; what is required of a module exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.lua_arrows import (
    arrows,
    arrows_between_children,
    child_of,
    circles,
    members,
    module_name,
    required_names,
    used_members,
)

REPO = Path(__file__).resolve().parents[2]
LUA = REPO / "lua"
ROOMS = REPO / "doc" / "dev" / "rooms.md"

# Users name these modules in their configuration, so each of the two rooms keeps its `blink` and its `cmp`.
PUBLIC = frozenset({"completion.blink", "completion.cmp", "inline.blink", "inline.cmp"})


def short(module: str) -> str:
    """Return a module's name without the name of the plugin."""
    return module.removeprefix("codecompanion").lstrip(".")


def rooms(page: str) -> dict[str, list[str]]:
    """Return the children of each Lua folder that a page lists, from the ground up."""
    found: dict[str, list[str]] = {}
    here: list[str] | None = None
    for line in page.splitlines():
        if line.startswith("#"):
            heading = re.fullmatch(r"## (lua/[\w/]+)/", line)
            here = found.setdefault(heading[1], []) if heading else None
        elif here is not None and (row := re.match(r"\| `([\w./]+)` \|", line)):
            here.append(row[1])
    return found


def folders(root: Path) -> list[Path]:
    """Return the folders below `root` that hold Lua files, `root` not among them."""
    return sorted(path for path in root.rglob("*") if path.is_dir() and any(path.rglob("*.lua")))


def children(folder: Path) -> list[str]:
    """Return the names of a folder's subfolders and Lua files."""
    return sorted({child_of(path, folder) for path in folder.rglob("*.lua")})


def pointing_up(root: Path, folder: Path, order: list[str]) -> list[str]:
    """Return each arrow from a child of `folder` to one that `order` lists below it."""
    return [
        f"{folder.relative_to(root)}/: {short(module)} requires {short(target)}"
        for (child, other), pairs in arrows_between_children(root, folder).items()
        for module, target in pairs
        if child in order and other in order and order.index(child) < order.index(other)
    ]


def rings(root: Path, folder: Path) -> list[set[str]]:
    """Return the children of `folder` that require each other, directly or by way of others."""
    graph: dict[str, set[str]] = {child: set() for child in children(folder)}
    for child, other in arrows_between_children(root, folder):
        graph[child].add(other)
    return circles(graph)


def test_each_folder_with_rooms_has_a_table() -> None:
    """Every child is listed once; a folder that holds only files needs no table."""
    listed = rooms(ROOMS.read_text(encoding="utf-8"))
    with_rooms = {
        path.relative_to(REPO).as_posix()
        for path in folders(LUA)
        if any(child.endswith("/") for child in children(path))
    }
    assert sorted(with_rooms - listed.keys()) == []
    assert {name: sorted(order) for name, order in listed.items()} == {name: children(REPO / name) for name in listed}


def test_rooms_require_only_rooms_above_them_in_their_table() -> None:
    """A room can be read, tested and changed without those that are listed after it."""
    listed = rooms(ROOMS.read_text(encoding="utf-8"))
    assert "lua/codecompanion" in listed
    wrong = [arrow for name, order in listed.items() for arrow in pointing_up(LUA, REPO / name, order)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", folders(LUA), ids=lambda path: path.relative_to(LUA).as_posix())
def test_no_ring_among_the_children_of_a_folder(folder: Path) -> None:
    """Subfolders are taken whole: two rooms that require each other are one room."""
    assert rings(LUA, folder) == []


def test_no_circles() -> None:
    """109 of 158 modules were one circle, held together by inline requires; none may be in one again."""
    assert [sorted(map(short, group)) for group in circles(arrows(LUA))] == []


def test_a_ring_and_an_arrow_that_points_up_are_found(tmp_path: Path) -> None:
    """The negative of the checks: one require inside a function is enough."""
    folder = tmp_path / "plugin"
    sources = {
        "low/one": 'return function() require("plugin.high.two") end',
        "high/two": "return 2",
        "high/three": 'return require("plugin.low.four")',
        "low/four": "return 4",
    }
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.lua").write_text(source, encoding="utf-8")
    assert circles(arrows(tmp_path)) == []
    assert rings(tmp_path, folder) == [{"low/", "high/"}]
    page = "# Lua\n\n## lua/plugin/\n\n| room | what it holds |\n|---|---|\n| `low/` | a |\n| `high/` | b |\n"
    assert rooms(page) == {"lua/plugin": ["low/", "high/"]}
    assert pointing_up(tmp_path, folder, ["low/", "high/"]) == ["plugin/: plugin.low.one requires plugin.high.two"]


def test_no_name_occurs_in_two_rooms() -> None:
    """A name says what a file holds, so that two never share one; sections of the options are named as they are."""
    options = LUA / "codecompanion" / "config" / "options"
    files = [path for path in LUA.rglob("*.lua") if path.name != "init.lua" and options not in path.parents]
    names = Counter(path.stem for path in files if short(module_name(path, LUA)) not in PUBLIC)
    assert [name for name, count in names.items() if count > 1] == []
    assert {short(module) for module in arrows(LUA)} >= PUBLIC


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
