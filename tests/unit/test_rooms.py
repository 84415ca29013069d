"""Rooms point one way as `doc/dev/rooms.md` lists them; a module name occurs once; a long file has a reason.

An import inside a function counts, and so does one under `TYPE_CHECKING`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.unit.lua_arrows import arrows as lua_arrows
from tests.unit.lua_arrows import module_name
from tests.unit.rooms_page import PAGE, REPO, against_the_order, long_files, orders, rooms_of
from tests.unit.test_import_rules import PACKAGE, arrows_of_the_package, modules

LUA = REPO / "lua" / "codecompanion"
SUFFIX = {PACKAGE: ".py", LUA: ".lua"}
# A file is named as its command or its section of the options; the rooms of adapters have the same parts (`render`).
NAMED_BY_OTHERS = ("cli.commands", "config.options")
ALIKE = "adapters"
# Users name these modules in their configuration, so each of the two rooms keeps its `blink` and its `cmp`.
PUBLIC = ("completion.blink", "completion.cmp", "inline.blink", "inline.cmp")
MAX_LINES = 400


def folders_with_rooms() -> list[Path]:
    """Return the folders of both trees that have folders with code in them."""
    return [
        folder
        for root, suffix in SUFFIX.items()
        for folder in (root, *sorted(path for path in root.rglob("*") if path.is_dir()))
        if any(name.endswith("/") for name in rooms_of(folder, suffix))
    ]


@cache
def page() -> dict[str, tuple[str, ...]]:
    """Return the tables of the page."""
    return orders(PAGE.read_text(encoding="utf-8"))


@cache
def all_arrows(root: Path) -> dict[str, set[str]]:
    """Return the modules that each module imports or requires, by dotted names that begin with `codecompanion`."""
    if root == LUA:
        return lua_arrows(LUA.parent)
    return {
        f"codecompanion.{module}": {f"codecompanion.{target}" for target in targets}
        for module, targets in arrows_of_the_package().items()
    }


def tree_of(folder: Path) -> Path:
    """Return the tree that a folder belongs to."""
    return next(root for root in SUFFIX if folder == root or root in folder.parents)


FOLDERS = pytest.mark.parametrize("folder", folders_with_rooms(), ids=lambda path: path.relative_to(REPO).as_posix())


@FOLDERS
def test_the_page_lists_every_room_once(folder: Path) -> None:
    """A newcomer finds each room and its place on one page."""
    listed = page().get(folder.relative_to(REPO).as_posix(), ())
    assert sorted(listed) == sorted(rooms_of(folder, SUFFIX[tree_of(folder)]))


def test_the_page_lists_no_missing_folder() -> None:
    """A table of a removed folder would check nothing."""
    assert page().keys() == {folder.relative_to(REPO).as_posix() for folder in folders_with_rooms()}


@FOLDERS
def test_rooms_point_one_way(folder: Path) -> None:
    """A room can be read, tested and changed without those below it in its table."""
    tree = tree_of(folder)
    name = ".".join(folder.relative_to(tree.parent).parts)
    wrong = against_the_order(all_arrows(tree), page()[folder.relative_to(REPO).as_posix()], name)
    assert not wrong, "\n".join(wrong)


def test_an_arrow_against_the_order_is_found() -> None:
    """The check reports arrows between rooms, between a room and a file, to the folder itself, not within a room."""
    arrows = {
        "p.low.a": {"p.high.b", "p.low.c"},
        "p.high.b": {"p.low.a"},
        "p.one": {"p.high.b"},
        "p.low.c": {"p.one", "p"},
    }
    found = against_the_order(arrows, ("low/", "one.py", "high/", "init.lua"), "p")
    assert [line.split(", which")[0] for line in found] == [
        "p: low (p.low.a) imports high (p.high.b)",
        "p: low (p.low.c) imports init (p)",
        "p: low (p.low.c) imports one (p.one)",
        "p: one (p.one) imports high (p.high.b)",
    ]


def names_in_several_rooms(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the last parts of dotted names that occur more than once, with their rooms."""
    rooms = defaultdict(set)
    for name in names:
        room, _, last = name.rpartition(".")
        if room not in NAMED_BY_OTHERS and name not in PUBLIC and last != "__main__":
            rooms[last].add(ALIKE if room.startswith(f"{ALIKE}.") else room)
    return {last: sorted(found) for last, found in rooms.items() if len(found) > 1}


def test_a_module_name_occurs_once() -> None:
    """`reply.py` in five rooms is ambiguous in a list of open files."""
    python = [module for path, module in modules() if path.name != "__init__.py"]
    lua = [module_name(path, LUA) for path in LUA.rglob("*.lua") if path.name != "init.lua"]
    assert names_in_several_rooms(python) == {}
    assert names_in_several_rooms(lua) == {}
    assert set(PUBLIC) <= set(lua)


def test_a_name_in_two_rooms_is_found() -> None:
    """The check reports it, except for the parts of adapters and the commands."""
    names = ["a.reply", "b.reply", "adapters.x.render", "adapters.y.render", "cli.commands.a", "b.a", "adapters.x.b"]
    assert names_in_several_rooms([*names, "root", "b.root"]) == {"reply": ["a", "b"], "root": ["", "b"]}


def test_a_long_file_has_a_reason() -> None:
    """A file that grows past its idea is split, or says on the page why it is not."""
    files = [*PACKAGE.rglob("*.py"), *LUA.rglob("*.lua")]
    long = {path.relative_to(REPO).as_posix() for path in files if path.read_bytes().count(b"\n") > MAX_LINES}
    assert long == set(long_files(PAGE.read_text(encoding="utf-8")))
