"""Where tools come from: each source is a provider, and what it gives is treated like what is built in.

Names, approvals, time limits, the length of results, YOLO: all of it is decided from the `Tool` alone.
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


NOT_STARTED = "not started"
"""The state of a group whose tools come once a message wants them."""


class ProvidedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """All tools of a provider, chosen together under one name: `@{mcp:time}`."""

    name: str
    short: str
    """Means the group too (`@{time}`) where no other group and no tool has the name."""
    brings: Callable[[str], bool]
    """Whether a tool of this name would be one of them, also before there are any."""
    what: str
    """Whose tools they are, within a sentence: `the MCP server time`."""
    state: str = ""
    """Why its tools are not there, a word and, after a colon, more; "" when they are."""
    is_listed: bool = True
    why_not: str = ""
    """Why it cannot be chosen, and what to do, without a full stop; "" when nothing is to be done."""
    lacks: str = ""
    """The extra whose packages it needs first, "" when it needs none."""


@runtime_checkable
class GroupingProvider(Protocol):
    """A provider whose tools are chosen together."""

    def group(self, root: Path) -> ProvidedGroup | None:
        """Return the group as it is now, None where chats in the folder get none of its tools."""


class GivenTools:
    """Tools that never change."""

    def __init__(self, source: str, tools: Iterable[Tool]) -> None:
        self.source, self._tools = source, tuple(tools)

    def tools(self, root: Path) -> tuple[Tool, ...]:
        """Return them."""
        del root
        return self._tools
