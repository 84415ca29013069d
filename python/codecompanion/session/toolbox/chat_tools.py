"""Determines the tools of one chat from the providers for its folder and the chat's choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from codecompanion.context.shaping.prompt_shape import Fragment
from codecompanion.model.messages import ToolSpec
from codecompanion.session.toolbox.tool_groups import (
    ALL_UNITS,
    BUILT_IN,
    NO_UNITS,
    SERVERS,
    Group,
    chosen_names,
    is_of_server,
    joined,
    unit_of,
    units_of,
)
from codecompanion.settings_sections import ToolsSettings
from codecompanion.tools import tool_registry
from codecompanion.tools.tool_registry import OTHER_NAMES, ToolRegistry
from codecompanion.tools.toolbox import Toolbox

SHARE_FOR_TOOLS = 0.2
"""Maximum share (0..1) of the context window for built-in tools that were not chosen explicitly."""


class ChatTools:
    """The tools of one chat. `root` returns its folder, `choice` its chosen units."""

    def __init__(
        self,
        toolbox: Toolbox,
        settings: Callable[[], ToolsSettings],
        choice: Callable[[], tuple[str, ...]],
        root: Callable[[], Path] = Path,
        *,
        window: Callable[[], int] = lambda: 0,
        count: Callable[[Sequence[ToolSpec]], int] = lambda specs: 0,
    ) -> None:
        """Initialise the tools of a chat.

        `window` returns the model's context window in tokens (0 = unknown), `count` the token count of tool schemas.
        """
        self._toolbox, self._settings, self._choice, self.root = toolbox, settings, choice, root
        self._window, self._count = window, count
        self._of_window: tuple[ToolRegistry, int, ToolRegistry] | None = None
        self.sends_code: Callable[[], bool] = lambda: True
        """Returns whether code may be sent; if not, no tools are offered, because most can return code."""
        self._made: tuple[ToolRegistry, tuple[str, ...], ToolRegistry] | None = None

    async def settle(self) -> None:
        """Wait a few seconds for providers that are not ready and may have tools that the choice offers."""
        await self._toolbox.settle(self.root(), self.may_offer)

    async def settle_all(self) -> None:
        """Wait a few seconds for every provider that is not ready."""
        await self._toolbox.settle(self.root())

    def may_offer(self, is_one: Callable[[str], bool], group: str = "") -> bool:
        """Return whether the current choice would offer tools for which `is_one(name)` is true, once they exist.

        `group` is the name of the provider's own group of tools.
        """
        units = self.units
        if not units:
            return True
        groups = self.groups(self.all())
        named, without = set[str](), set[str]()
        for unit in units:
            kind, _, name = unit.partition(":")
            if kind == "group" and name in groups:
                members = groups[name].tools
                is_its_own = groups[name].provided is not None and name == group
                if members is None or is_its_own or (name == SERVERS and group.startswith(f"{SERVERS}:")):
                    return True
                named.update(members)
            elif kind == "tool":
                named.add(name)
            elif kind == "-tool":
                without.add(name)
        return any(map(is_one, named - without))

    def may_come(self, name: str) -> bool:
        """Return whether the tool does not exist yet but may be added when its server starts."""
        return self._toolbox.may_bring(name, self.root())

    def missing(self) -> list[tuple[str, str]]:
        """Return (option, name) for each configured tool name that does not exist and will not be added later."""
        registry, settings = self.all(), self._settings()
        groups, known = self.groups(registry), registry.names()
        chosen = [groups[unit[6:]] for unit in self.units if unit.startswith("group:") and unit[6:] in groups]
        given = [(f"groups.{one.name}.tools", one.tools or ()) for one in chosen if one.name in settings.groups]
        named = [(key, name) for key, names in given for name in names if name not in known]
        if not self._choice():
            names = settings.default_tools or ()
            named += [("opts.default_tools", name) for name in names if not unit_of(name, groups, known)]
        return [(key, name) for key, name in named if is_of_server(name) and not self.may_come(name)]

    def names(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Return the names of all existing tools, plus the wanted names that may be added later."""
        known = self.all().names()
        return (*known, *(name for name in wanted if name not in known and self.may_come(name)))

    def all(self) -> ToolRegistry:
        """Return every tool available to the chat."""
        return self._toolbox.registry(self.root())

    def offered(self) -> ToolRegistry:
        """Return the tools that this chat may offer now."""
        registry, units = self.all(), self.units
        if not self.sends_code():
            return registry.only(frozenset())
        if not units:
            return self._for_window(registry)
        if self._made is None or self._made[0] is not registry or self._made[1] != units:
            names = registry.names()
            chosen = chosen_names(units, self.groups(registry), names, self.always)
            self._made = registry, units, registry.only(frozenset(chosen))
        return self._made[2]

    def _for_window(self, registry: ToolRegistry) -> ToolRegistry:
        """Return the tools of a chat without a choice: all, or the most important in a small context window."""
        window = self._window()
        if self._of_window is None or self._of_window[:2] != (registry, window):
            most, made = int(SHARE_FOR_TOOLS * window), registry
            built_in = [name for name in registry.names() if registry.sources[name] == tool_registry.BUILT_IN]
            if window and self._count(registry.only(built_in).specs()) > most:
                made = registry.for_small_window(most, self._count)
            self._of_window = registry, window, made
        return self._of_window[2]

    @property
    def held_back(self) -> tuple[str, ...]:
        """Return the tools that are not offered because the context window is small and none were chosen."""
        if self.units or not self.sends_code():
            return ()
        offered = self.offered().names()
        return tuple(name for name in self.all().names() if name not in offered)

    @property
    def always(self) -> tuple[str, ...]:
        """Return the tools included in every choice, namely those that recall removed messages."""
        registry = self.all()
        return tuple(name for name in registry.names() if registry.get(name).only_when_removed)

    @property
    def units(self) -> tuple[str, ...]:
        """Return the choice in force: the chat's, else the configured one; empty = all tools."""
        return self._choice() or self.default_units

    @property
    def default_units(self) -> tuple[str, ...]:
        """Return the choice of a new chat; empty = all tools."""
        names = self._settings().default_tools
        if names is None:
            return ()
        units, _ = units_of(names, self.groups(self.all()), self.names(names))
        return tuple(dict.fromkeys(units)) or NO_UNITS

    @property
    def starting_units(self) -> tuple[str, ...]:
        """Return the units shown when the user edits the choice: those in force, else the offered tools."""
        return self.units or self.unchosen_units

    @property
    def unchosen_units(self) -> tuple[str, ...]:
        """Return the units offered in a chat without a choice."""
        registry = self.all()
        if self.default_units or self._for_window(registry) is registry:
            return self.default_units or ALL_UNITS
        servers = self.groups(registry).get(SERVERS)
        of_servers = servers.tools or () if servers is not None else ()
        single = (f"tool:{name}" for name in self._for_window(registry).names() if name not in of_servers)
        of_all = (f"group:{SERVERS}",) if servers is not None else ()
        return (*single, *of_all, *(f"-tool:{name}" for name in self.always))

    def groups(self, registry: ToolRegistry) -> Mapping[str, Group]:
        """Return the groups by name: built-in ones, the user's, and those of providers."""
        given = self._settings().groups
        found = {group.name: group for group in BUILT_IN if given.get(group.name, group) is not None}
        for one, tools in self._toolbox.groups(self.root()):
            found[one.name] = Group(one.name, f"The tools of {one.what}.", tools, provided=one)
        servers = [group for group in found.values() if group.provided]
        if servers:
            found[SERVERS] = joined(servers)
        for name, group in sorted(given.items()):
            if group is not None:
                tools = tuple(OTHER_NAMES.get(tool, tool) for tool in group.tools)
                other = found[name].provided if name in found else None
                own = Group(name, group.description, tools, group.system_prompt, group.collapse)
                found[name] = msgspec.structs.replace(own, instead_of=other.what if other else "")
        return found

    def fragments(self) -> Iterable[Fragment]:
        """Yield the system prompts of the chosen groups."""
        units = self.units
        if not units:
            return
        groups = self.groups(self.all())
        for unit in units:
            kind, _, name = unit.partition(":")
            if kind == "group" and name in groups and groups[name].system_prompt:
                text = groups[name].system_prompt
                yield Fragment(key=f"tool_group_{name}", label=f"tool group {name}", full=text, source="configuration")
