"""Defines tool groups, and resolves a chat's choice of tools and groups. Pure.

A choice is a tuple of units in the order they were chosen: `group:files`, `tool:read_file`, and `-tool:run_command` for
a tool excluded from the other units. An empty choice is the default.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

import msgspec

from codecompanion.settings_sections import ToolsSettings
from codecompanion.tools.tool_provider import ProvidedGroup
from codecompanion.tools.tool_registry import OTHER_NAMES

FULL, NONE = "full", "none"
ALL_UNITS = ("group:full",)
NO_UNITS = ("group:none",)


class Group(msgspec.Struct, frozen=True):
    """A named group of tools. `tools`: None = all tools. `system_prompt` is sent while the group is chosen."""

    name: str
    description: str
    tools: tuple[str, ...] | None = None
    system_prompt: str = ""
    collapse: bool = True
    provided: ProvidedGroup | None = None
    """The provider's definition of the group, if a provider supplies it."""
    instead_of: str = ""
    """The owner of the provider's group that this user-defined group replaces, such as `the MCP server time`."""


BUILT_IN = (
    Group(FULL, "All tools."),
    Group(
        "files",
        "Find, read and change files; no commands.",
        ("read_file", "file_search", "grep_search", "code_search", "insert_edit", "create_file", "delete_file"),
    ),
    Group(
        "read_only",
        "Find and read files; no changes.",
        ("read_file", "file_search", "grep_search", "code_search", "get_diagnostics"),
    ),
    Group(NONE, "No tools.", ()),
)


TOOLS_KEY = "interactions.chat.tools"
SERVERS = "mcp"
"""Name of the group with the tools of all MCP servers; the group of one server is `mcp:name`."""


def unknown_members(settings: ToolsSettings, built_in: Sequence[str], servers: Iterable[str] = ()) -> list[str]:
    """Return a sentence for each unknown name in the user's groups and `default_tools`.

    `servers` are the names of the configured MCP servers.

    Server tools (`server__tool`, `mcp:server`) are unknown until the servers start or a project names them, so
    `ChatTools.missing` checks those.
    """
    tools = [*built_in, *settings.own]
    groups = [*{group.name for group in BUILT_IN} | set(settings.groups) | set(servers)]
    given: list[tuple[str, Sequence[str], list[str]]] = [
        (f"groups.{name}.tools", group.tools, tools) for name, group in settings.groups.items() if group
    ]
    chosen = [name for name in settings.default_tools or () if not is_of_server(name)]
    given.append(("opts.default_tools", chosen, [*tools, *groups]))
    sentences = []
    for key, names, known in given:
        for number, name in enumerate(names, 1):
            if OTHER_NAMES.get(name, name) not in known and "__" not in name:
                found = get_close_matches(name, known, n=1)
                hint = f"did you mean {found[0]}?" if found else "/tools lists all."
                is_group = name in groups or is_of_server(name)
                what = f"{name} is a group; list only tools here" if is_group else f"there is no tool {name}; {hint}"
                sentences.append(f"{TOOLS_KEY}.{key}[{number}]: {what}")
    return sentences


def is_of_server(name: str) -> bool:
    """Return whether a name has the form of an MCP server's tool or group, so that it may become known later."""
    return "__" in name or name == SERVERS or name.startswith(f"{SERVERS}:")


def unit_of(name: str, groups: Mapping[str, Group], tools: Sequence[str]) -> str:
    """Return the unit that a name in a message refers to, or "". A group takes precedence over a tool."""
    if name in groups:
        return f"group:{name}"
    ours = OTHER_NAMES.get(name, name)
    if ours in tools:
        return f"tool:{ours}"
    return next((f"group:{group.name}" for group in _provided(groups) if group.short == name), "")


def _provided(groups: Mapping[str, Group]) -> list[ProvidedGroup]:
    return [group.provided for group in groups.values() if group.provided is not None]


def other_meanings(names: Iterable[str], groups: Mapping[str, Group], tools: Sequence[str]) -> list[str]:
    """Return a sentence for each ambiguous name: one that refers to a group or tool but is also a provider's group."""
    said = []
    for name in names:
        unit = unit_of(name, groups, tools)
        kind, _, meant = unit.partition(":")
        if kind == "group" and groups[meant].instead_of:
            said.append(f"@{{{name}}} is your own group of that name, not all tools of {groups[meant].instead_of}.")
        for group in _provided(groups):
            if unit and group.short == name and unit != f"group:{group.name}":
                what = "group" if kind == "group" else "tool"
                said.append(f"@{{{name}}} is the {what} of that name; @{{{group.name}}} chooses {group.what}.")
    return said


def joined(families: Iterable[Group]) -> Group:
    """Return one group with the tools of all servers."""
    tools = [tool for group in families for tool in group.tools or ()]
    return Group(SERVERS, "The tools of all MCP servers.", tuple(dict.fromkeys(tools)))


def units_of(names: Iterable[str], groups: Mapping[str, Group], tools: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the units that names refer to, and the unknown names.

    Groups with `collapse` off are replaced by their tools.
    """
    units, unknown = list[str](), list[str]()
    for name in names:
        unit = unit_of(name, groups, tools)
        group = groups.get(name)
        if not unit:
            unknown.append(name)
        elif group is not None and not group.collapse and group.tools is not None:
            units += [unit for tool in group.tools if (unit := unit_of(tool, {}, tools))]
        else:
            units.append(unit)
    return units, unknown


def chosen_names(
    units: Sequence[str], groups: Mapping[str, Group], tools: Sequence[str], always: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the tools that are offered under a choice, in the order of `tools`.

    `always`: tools included in every choice except "none", unless excluded by name.
    """
    wanted, without = set(always if tuple(units) != NO_UNITS else ()), set[str]()
    for unit in units:
        kind, _, name = unit.partition(":")
        if kind == "group":
            members = groups[name].tools if name in groups else ()
            wanted |= set(tools if members is None else members)
        elif kind == "tool":
            wanted.add(name)
        else:
            without.add(name)
    return tuple(name for name in tools if name in wanted - without)


def with_units(choice: Sequence[str], added: Iterable[str]) -> tuple[str, ...]:
    """Return the choice with units added; `group:none` clears the choice, and any other unit removes `group:none`."""
    units = [unit for unit in choice if unit != NO_UNITS[0]]
    for unit in added:
        if unit == NO_UNITS[0]:
            units = []
        units = [one for one in units if one not in (unit, f"-{unit}")]
        units.append(unit)
    return tuple(units)


def without_tool(
    choice: Sequence[str],
    name: str,
    groups: Mapping[str, Group],
    tools: Sequence[str],
    always: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the choice without one tool, by removing its unit or excluding it from a group."""
    units = tuple(unit for unit in choice if unit != f"tool:{name}")
    if name in chosen_names(units, groups, tools, always):
        return (*units, f"-tool:{name}")
    return units or NO_UNITS


def nearest_name(name: str, groups: Mapping[str, Group], tools: Sequence[str]) -> str:
    """Return the tool or group with the most similar name, or "" if none is similar."""
    found = get_close_matches(name, [*groups, *tools], n=1)
    return found[0] if found else ""
