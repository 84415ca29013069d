"""Creates the host's MCP servers on demand, so that a host without servers does not import their code."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from codecompanion.session.services import Services
from codecompanion.wire.requests import ChangeMcp, ReadMcp, ShowMcp

if TYPE_CHECKING:
    from codecompanion.engine.mcp import McpHost
    from codecompanion.session.session import Session


class LazyMcpHost:
    """Loads the servers in the settings, and those in the projects of open chats."""

    def __init__(self, services: Services, chats: Mapping[str, Session]) -> None:
        self._services, self._chats = services, chats
        self._host: McpHost | None = None
        if services.settings.mcp.enabled and services.settings.mcp.servers:
            self._made()

    def _made(self) -> McpHost:
        from codecompanion.engine.mcp import McpHost

        if self._host is None:
            self._host = McpHost(self._services, self._chats)
        return self._host

    async def opened(self, session: Session) -> None:
        """Load the servers of the chat's project, if it has any."""
        mcp = self._services.settings.mcp
        if not mcp.enabled:
            return
        file = session.root() / ".mcp.json"
        if self._host is not None or (mcp.project_file and await asyncio.to_thread(file.is_file)):
            await self._made().opened(session)

    async def carry_out(self, request: ShowMcp | ChangeMcp | ReadMcp) -> object:
        """Handle the editor's requests about servers; raises `CodeCompanionError`."""
        return await self._made().carry_out(request)

    async def aclose(self) -> None:
        """Stop all servers; return when their processes have exited."""
        if self._host is not None:
            await self._host.aclose()
