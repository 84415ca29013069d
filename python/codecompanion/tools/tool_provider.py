"""Defines tool providers: sources of tools that are treated like the built-in ones.

Names, approvals, time limits, the length of results and YOLO depend only on the `Tool`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from codecompanion.tools.tool import Tool


class ToolProvider(Protocol):
    """A source of tools: the plugin, the user's configuration, a server."""

    @property
    def source(self) -> str:
        """The owner of these tools, as shown to the user: `built in`, `your configuration`, `MCP server time`."""

    def tools(self, root: Path) -> Sequence[Tool]:
        """Return the current tools for chats in the folder, always in the same order (prompt cache).

        This is called before each request, so it must answer from memory at once, without reading or waiting, and
        return the very same objects as long as nothing has changed. A tool with its own `settings` needs no entry in
        the user's configuration. If it raises an exception, its tools are left out and one sentence reports this.
        """


@runtime_checkable
class LateProvider(Protocol):
    """A provider with tools that arrive later, because it must load something or its server has not started yet."""

    def may_bring(self, name: str, root: Path) -> bool:
        """Return whether a tool of this name may still arrive, for chats in the folder."""


@runtime_checkable
class SettlingProvider(LateProvider, Protocol):
    """A late provider whose tools can be awaited."""

    @property
    def is_settled(self) -> bool:
        """Return whether its list of tools is final; called before each request."""

    async def settle(self, root: Path) -> None:
        """Complete the list of tools. A request waits a few seconds for this; loading continues in the background."""


NOT_STARTED = "not started"
"""The state of a group whose tools are loaded when a message needs them."""


class ProvidedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """All tools of a provider, chosen together under one name: `@{mcp:time}`."""

    name: str
    short: str
    """A shorter name for the group (`@{time}`) if no other group or tool has that name, otherwise ""."""
    brings: Callable[[str], bool]
    """A function that returns whether a tool with the given name would be in the group, even before it has any tools.
    """
    what: str
    """The owner of the tools, as part of a sentence: `the MCP server time`."""
    state: str = ""
    """Why the group's tools are missing: a word, then details after a colon; "" if they are available."""
    is_listed: bool = True
    why_not: str = ""
    """Why the group cannot be chosen, and the remedy, without a full stop; "" if no action is needed."""
    lacks: str = ""
    """The extra whose packages must be installed first, or "" if none."""


@runtime_checkable
class GroupingProvider(Protocol):
    """A provider whose tools are chosen together."""

    def group(self, root: Path) -> ProvidedGroup | None:
        """Return the group in its current state, or None if chats in the folder get none of its tools."""


class GivenTools:
    """A provider of tools that never change."""

    def __init__(self, source: str, tools: Iterable[Tool]) -> None:
        self.source, self._tools = source, tuple(tools)

    def tools(self, root: Path) -> tuple[Tool, ...]:
        """Return the tools."""
        del root
        return self._tools
