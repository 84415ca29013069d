"""What a chat needs of MCP servers; `servers` has them."""

from __future__ import annotations

from typing import Any, Protocol


class Mcp(Protocol):
    """The servers of a host."""

    async def look(self, chat: Any) -> None:
        """Learn which servers of files the chat may use by now: a file, or an answer about one, may be another one."""

    async def wait_for(self, chat: Any) -> None:
        """Start what the chat can use and wait for it as long as the user wants; say what is missing."""
