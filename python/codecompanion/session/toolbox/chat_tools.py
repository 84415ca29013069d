"""The tools of one chat: what the providers bring for its folder, and what of it the chat has chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from codecompanion.context.shaping.prompt_shape import Fragment
from codecompanion.session.toolbox.groups import (
    ALL_UNITS,
    BUILT_IN,
    NO_UNITS,
    Group,
    chosen_names,
    units_of,
)
from codecompanion.settings import ToolsSettings
from codecompanion.tools.registry import OTHER_NAMES, ToolRegistry
from codecompanion.tools.toolbox import Toolbox


class ChatTools:
    """What of the toolbox one chat gets. `root` says which folder it works in, `choice` what it has chosen (units)."""

    def __init__(
        self,
        toolbox: Toolbox,
        settings: Callable[[], ToolsSettings],
        choice: Callable[[], tuple[str, ...]],
        root: Callable[[], Path] = Path,
    ) -> None:
        self._toolbox, self._settings, self._choice, self.root = toolbox, settings, choice, root
        self._made: tuple[ToolRegistry, tuple[str, ...], ToolRegistry] | None = None

    async def settle(self) -> None:
        """Wait a few seconds for providers that are not ready, of those whose tools the choice may offer."""
        await self._toolbox.settle(self.root(), self.may_offer)

    async def settle_all(self) -> None:
        """Wait a few seconds for every provider that is not ready."""
        await self._toolbox.settle(self.root())

    def may_offer(self, is_one: Callable[[str], bool]) -> bool:
        """Return whether the choice in force offers tools of such names, as soon as they are there."""
        units = self.units
        if not units:
            return True
        groups = self.groups(self.all())
        named, without = set[str](), set[str]()
        for unit in units:
            kind, _, name = unit.partition(":")
            if kind == "group" and name in groups:
                members = groups[name].tools
                if members is None:
                    return True
                named.update(members)
            elif kind == "tool":
                named.add(name)
            elif kind == "-tool":
                without.add(name)
        return any(map(is_one, named - without))

    def may_come(self, name: str) -> bool:
        """Return whether there is no such tool now, and may be one later: a server of its is not started yet."""
        return self._toolbox.may_bring(name, self.root())

    def missing(self) -> list[tuple[str, str]]:
        """Return the groups in force with each tool they name that is not there, and does not come later."""
        registry = self.all()
        groups, known = self.groups(registry), registry.names()
        chosen = [groups[unit[6:]] for unit in self.units if unit.startswith("group:") and unit[6:] in groups]
        return [
            (group.name, name)
            for group in chosen
            for name in group.tools or ()
            if name not in known and group.name in self._settings().groups and not self.may_come(name)
        ]

    def names(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Return the names of all tools there are, and those of the wanted ones that may come later."""
        known = self.all().names()
        return (*known, *(name for name in wanted if name not in known and self.may_come(name)))

    def all(self) -> ToolRegistry:
        """Return every tool there is for the chat."""
        return self._toolbox.registry(self.root())

    def offered(self) -> ToolRegistry:
        """Return the tools that may be offered in this chat now."""
        registry, units = self.all(), self.units
        if not units:
            return registry
        if self._made is None or self._made[0] is not registry or self._made[1] != units:
            names = registry.names()
            chosen = chosen_names(units, self.groups(registry), names, self.always)
            self._made = registry, units, registry.only(frozenset(chosen))
        return self._made[2]

    @property
    def always(self) -> tuple[str, ...]:
        """Return the tools that belong to every choice: what brings back what was taken out of the chat."""
        registry = self.all()
        return tuple(name for name in registry.names() if registry.get(name).only_when_removed)

    @property
    def units(self) -> tuple[str, ...]:
        """Return the choice in force: the chat's, else the configured one; empty = all tools."""
        return self._choice() or self.default_units

    @property
    def default_units(self) -> tuple[str, ...]:
        """Return what a chat begins with that has chosen nothing; empty = all tools."""
        names = self._settings().default_tools
        if names is None:
            return ()
        units, _ = units_of(names, self.groups(self.all()), self.names(names))
        return tuple(dict.fromkeys(units)) or NO_UNITS

    @property
    def starting_units(self) -> tuple[str, ...]:
        """Return what a change in the list begins with: the choice in force, all tools where there is none."""
        return self.units or ALL_UNITS

    def groups(self, registry: ToolRegistry) -> Mapping[str, Group]:
        """Return the groups by name: built-in, the user's, one for each provider that names its own."""
        given = self._settings().groups
        found = {group.name: group for group in BUILT_IN if given.get(group.name, group) is not None}
        for name, tools in registry.groups.items():
            found[name] = Group(name, f"The tools of {registry.sources[tools[0]]}.", tools)
        for name, group in sorted(given.items()):
            if group is not None:
                tools = tuple(OTHER_NAMES.get(tool, tool) for tool in group.tools)
                found[name] = Group(name, group.description, tools, group.system_prompt, group.collapse)
        return found

    def fragments(self) -> Iterable[Fragment]:
        """Yield what the chosen groups say to the model."""
        units = self.units
        if not units:
            return
        groups = self.groups(self.all())
        for unit in units:
            kind, _, name = unit.partition(":")
            if kind == "group" and name in groups and groups[name].system_prompt:
                text = groups[name].system_prompt
                yield Fragment(key=f"tool_group_{name}", label=f"tool group {name}", full=text, source="configuration")
