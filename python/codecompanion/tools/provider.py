"""Where tools come from: each source is a provider, and what it gives is treated like what is built in.

Names, approvals, time limits, the length of results, YOLO: all of it is decided from the `Tool` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from codecompanion.tools.base import Tool


class ToolProvider(Protocol):
    """A source of tools: the plugin, the user's configuration, a server.

    One that has an attribute `group` gives its tools a name under which they are chosen together: `@{mcp:time}`.
    """

    @property
    def source(self) -> str:
        """Whose tools these are, as the user reads it: `built in`, `your configuration`, `MCP server time`."""

    def tools(self, root: Path) -> Sequence[Tool]:
        """Return the tools of this moment for chats in the folder, always in the same order (prompt cache).

        It is asked before each request: it answers at once from what it knows, reads and waits for nothing, and gives
        the very same objects as long as nothing has changed. A tool that brings `settings` needs no entry in the
        user's configuration. What it raises costs its tools and one sentence.
        """


@runtime_checkable
class LateProvider(Protocol):
    """A provider some of whose tools come later: it has to load something, or a server is not started yet."""

    def may_bring(self, name: str, root: Path) -> bool:
        """Return whether a tool of this name may be among those that are still to come, for chats in the folder."""


@runtime_checkable
class SettlingProvider(LateProvider, Protocol):
    """A late provider that can be waited for."""

    @property
    def is_settled(self) -> bool:
        """Return whether it knows what it has; asked before each request."""

    async def settle(self, root: Path) -> None:
        """Find it out. A request waits for that for a few seconds; then it goes on in its own time."""


class GivenTools:
    """Tools that never change."""

    def __init__(self, source: str, tools: Iterable[Tool]) -> None:
        self.source, self._tools = source, tuple(tools)

    def tools(self, root: Path) -> tuple[Tool, ...]:
        """Return them."""
        del root
        return self._tools
