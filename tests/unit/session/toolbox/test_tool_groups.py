"""Tool groups: the tools of a choice, in messages, in the list and in the context block."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.session.attachments.chosen_tools import named_in
from codecompanion.session.toolbox.tool_groups import (
    BUILT_IN,
    NO_UNITS,
    Group,
    chosen_names,
    units_of,
    with_units,
    without_tool,
)
from codecompanion.tools.builtin import BUILTIN_TOOLS

TOOLS = ("read", "write", "run")
GROUPS = {
    group.name: group
    for group in (
        Group("full", ""),
        Group("none", "", ()),
        Group("files", "", ("read", "write", "gone")),
        Group("flat", "", ("read", "run", "gone"), collapse=False),
    )
}


def test_the_built_in_groups_name_existing_tools() -> None:
    names = {tool.spec.name for tool in BUILTIN_TOOLS}
    for group in BUILT_IN:
        assert set(group.tools or ()) <= names
        assert group.description


@pytest.mark.parametrize(
    ("units", "names"),
    [
        (["group:full"], ("read", "write", "run")),
        (["group:files"], ("read", "write")),
        (["tool:run", "group:files"], ("read", "write", "run")),
        (["group:full", "-tool:run"], ("read", "write")),
        (["group:none"], ()),
        (["tool:gone", "group:what"], ()),
        ([], ()),
    ],
)
def test_a_choice_yields_tools_in_their_fixed_order(units: list[str], names: tuple[str, ...]) -> None:
    """The schemas keep the order of the prompt cache, whatever was chosen first."""
    assert chosen_names(units, GROUPS, TOOLS) == names


def test_names_become_units_and_a_flat_group_its_tools() -> None:
    assert units_of(["files", "run", "nope"], GROUPS, TOOLS) == (["group:files", "tool:run"], ["nope"])
    assert units_of(["flat"], GROUPS, TOOLS) == (["tool:read", "tool:run"], [])


def test_units_are_added_and_removed() -> None:
    assert with_units((), ["group:files"]) == ("group:files",)
    assert with_units(("group:files",), ["tool:run", "group:files"]) == ("tool:run", "group:files")
    assert with_units(("group:full", "-tool:run"), ["tool:run"]) == ("group:full", "tool:run")
    assert with_units(("group:files",), ["group:none"]) == NO_UNITS
    assert with_units(NO_UNITS, ["tool:run"]) == ("tool:run",)
    assert without_tool(("group:full",), "run", GROUPS, TOOLS) == ("group:full", "-tool:run")
    assert without_tool(("group:files", "tool:run"), "run", GROUPS, TOOLS) == ("group:files",)
    assert without_tool(("tool:run",), "run", GROUPS, TOOLS) == NO_UNITS


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("use @{files} and @{run} please", ("files", "run")),
        ("@{files}@{files}", ("files",)),
        ("(@{mcp:time})", ("mcp:time",)),
        ("see @src/a.py and me@{x}.org", ()),
        ("in `@{files}` and\n```\n@{run}\n```", ()),
        ("@{} @{a b} @{ä} {@{x}}", ()),
        ("@{" + "x" * 100 + "}", ()),
        ("@{files", ()),
    ],
)
def test_a_message_names_tools_in_braces(text: str, names: tuple[str, ...]) -> None:
    assert named_in(text) == names


def test_groups_are_values() -> None:
    assert msgspec.structs.replace(GROUPS["files"], name="x").tools == ("read", "write", "gone")
