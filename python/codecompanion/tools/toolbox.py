"""Combines the tools of all providers in one registry, in provider order and then in each provider's order.

If two tools have the same name, the first wins. A tool that cannot be offered, because of its name, its schema or an
error of its provider, is left out and reported once; the others are not affected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from codecompanion.errors import CodeCompanionError
from codecompanion.formats.regex import regex
from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.parameter_schema import problem_with_parameters
from codecompanion.tools.tool import Tool
from codecompanion.tools.tool_provider import (
    GroupingProvider,
    LateProvider,
    ProvidedGroup,
    SettlingProvider,
    ToolProvider,
)
from codecompanion.tools.tool_registry import BUILT_IN, OTHER_NAMES, ToolRegistry

_log = logging.getLogger(__name__)
_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
"""Matches tool names that every model provider accepts."""
_MAX_DESCRIPTION_CHARS = 20_000
SETTLE_S = 5.0
"""Seconds that a request waits for providers that are not ready; tools that arrive later are in the next request."""
_MAX_FOLDERS = 32


class Toolbox:
    """The tools of all providers."""

    def __init__(
        self,
        providers: Iterable[ToolProvider],
        settings: Mapping[str, ToolSettings] | None = None,
        tell: Callable[[str], None] = _log.warning,
    ) -> None:
        """Set the providers and the user's settings for individual tools.

        `tell` receives a sentence about each tool that was left out.
        """
        self._providers, self._settings, self._tell = list(providers), settings or {}, tell
        self._made: dict[Path, tuple[tuple[tuple[ToolProvider, tuple[Tool, ...]], ...], ToolRegistry]] = {}
        self._told: set[str] = set()
        self._settling: dict[SettlingProvider, asyncio.Task[None]] = {}

    def add(self, provider: ToolProvider) -> None:
        """Add another provider; its tools come after those of the others."""
        self._providers.append(provider)

    def remove(self, provider: ToolProvider) -> None:
        """Remove a provider; an unknown one is ignored."""
        if provider in self._providers:
            self._providers.remove(provider)

    def may_bring(self, name: str, root: Path) -> bool:
        """Return whether a tool of this name is missing but may arrive later."""
        return any(isinstance(one, LateProvider) and one.may_bring(name, root) for one in self._providers)

    async def settle(self, root: Path, wanted: Callable[[Callable[[str], bool]], bool] = lambda brings: True) -> None:
        """Wait for providers whose tools are not known yet, so that the first request has all schemas.

        `wanted` returns whether to wait for a provider; its argument is a function that checks whether the provider may
        bring a name.
        """
        waiting = [
            one
            for one in self._providers
            if isinstance(one, SettlingProvider)
            and not one.is_settled
            and wanted(lambda name, one=one: one.may_bring(name, root))  # type: ignore[misc]
        ]
        if not waiting:
            return
        for one in waiting:
            if one not in self._settling:
                self._settling[one] = asyncio.create_task(self._settled(one, root))
        await asyncio.wait([self._settling[one] for one in waiting], timeout=SETTLE_S)

    async def _settled(self, provider: SettlingProvider, root: Path) -> None:
        try:
            await provider.settle(root)
        except Exception as error:
            _log.error("settling %r", provider, exc_info=error)
        finally:
            self._settling.pop(provider, None)

    def registry(self, root: Path) -> ToolRegistry:
        """Return the tools for chats in the folder; the object stays the same as long as no provider's tools change."""
        given = tuple((provider, self._given_by(provider, root)) for provider in self._providers)
        made, known = self._made.get(root, (None, None))
        if known is not None and made == given:
            return known
        registry = ToolRegistry(self._good(given), self._settings)
        if len(self._made) >= _MAX_FOLDERS:
            self._made.pop(next(iter(self._made)))
        self._made[root] = given, registry
        return registry

    def groups(self, root: Path) -> list[tuple[ProvidedGroup, tuple[str, ...]]]:
        """Return the groups of providers for chats in the folder, in their current state, each with its tools.

        If two groups have the same name, the first wins.
        """
        found: dict[str, tuple[ProvidedGroup, tuple[str, ...]]] = {}
        for provider in self._providers:
            group = provider.group(root) if isinstance(provider, GroupingProvider) else None
            if group is None:
                continue
            if group.name in found:
                other = found[group.name][0].what
                self._say(f"@{{{group.name}}} chooses the tools of {other}; those of {group.what} have no group.")
                continue
            registry = self.registry(root)
            names = (name for name in registry.names() if registry.sources[name] == provider.source)
            found[group.name] = group, tuple(names)
        return list(found.values())

    def _given_by(self, provider: ToolProvider, root: Path) -> tuple[Tool, ...]:
        try:
            return tuple(provider.tools(root))
        except CodeCompanionError as error:
            self._say(f"The tools of {provider.source} are missing: {error}")
        except Exception as error:
            _log.error("tools of %s", provider.source, exc_info=error)
            self._say(f"The tools of {provider.source} are missing: {type(error).__name__}: {error}")
        return ()

    def _good(self, given: Iterable[tuple[ToolProvider, tuple[Tool, ...]]]) -> Iterator[tuple[str, Tool]]:
        """Yield the tools that can be offered, each with its source."""
        sources: dict[str, str] = {}
        for provider, tools in given:
            for tool in tools:
                name = tool.spec.name
                # A test checks the built-in tools, so a start does not have to.
                problem = "" if provider.source == BUILT_IN else _problem_with(tool)
                ours = OTHER_NAMES.get(name, name) if isinstance(name, str) else name
                if not problem and ours in sources:
                    problem = f"another tool ({sources[ours]}) has this name"
                if problem:
                    key = getattr(provider, "key", "")
                    what = f"{key}.{name}: it" if key else f"The tool {str(name)[:80]} of {provider.source}"
                    self._say(f"{what} is not offered: {problem}.")
                else:
                    sources[name] = provider.source
                    yield provider.source, tool

    def _say(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._tell(sentence)


def _problem_with(tool: Tool) -> str:
    spec = tool.spec
    if not isinstance(spec.name, str) or not _NAME.fullmatch(spec.name):
        return "its name must be 1 to 64 characters: letters, digits, “_” or “-”"
    if not isinstance(spec.description, str) or not spec.description.strip():
        return "it has no description"
    if len(spec.description) > _MAX_DESCRIPTION_CHARS:
        return f"its description is longer than {_MAX_DESCRIPTION_CHARS:,} characters"
    return problem_with_parameters(spec.parameters)
