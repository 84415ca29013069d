"""Connects the host's MCP servers with the editor; imported and created only if there are servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codecompanion.engine.log import register_secrets
from codecompanion.errors import InputError
from codecompanion.mcp.server_types import Given
from codecompanion.session.attachments.attached import text_attachment
from codecompanion.session.chat.chat import Chat
from codecompanion.session.editor_context.source import SourceResult
from codecompanion.session.mcp.file_servers import FileServers
from codecompanion.session.mcp.server import Server
from codecompanion.session.mcp.servers import McpServers
from codecompanion.session.services import Services
from codecompanion.session.session import Session
from codecompanion.wire.requests import ChangeMcp, EditorText, ReadMcp, ShowMcp


class McpHost:
    """Manages the host's servers for `Runtime`."""

    def __init__(self, services: Services, chats: Mapping[str, Session]) -> None:
        self._services = services
        self._chats = chats
        self.servers = McpServers(services, lambda: chats, self._keep_secret)
        self.files = FileServers(self.servers, services, lambda: chats)
        services.mcp = self
        services.context_sources["mcp"] = self._take

    def _keep_secret(self, values: Iterable[str]) -> None:
        values = tuple(values)
        register_secrets(values)
        self._services.known_secrets.learn(values)

    async def opened(self, session: Session) -> None:
        """Handle an opened chat: find its project's servers and start those with autostart."""
        await self.look(session)
        if self._services.settings.mcp.start_with_chat:
            self.servers.start_all(session.root())

    async def look(self, chat: Chat) -> None:
        """Update the servers from files that the chat may use."""
        await self.files.look(chat)

    async def wait_for(self, chat: Chat) -> None:
        """Start the servers that the chat can use, wait for them up to the configured time, and report missing ones."""
        await self.look(chat)
        await self.servers.wait_for(chat)

    async def carry_out(self, request: ShowMcp | ChangeMcp | ReadMcp) -> object:
        """Handle the editor's requests about servers; raises `CodeCompanionError`."""
        root = self._root(request.chat, request.cwd)
        match request:
            case ShowMcp():
                files = await self.files.files(root)
                return {"root": str(root), "servers": self.servers.status(root), "files": files}
            case ChangeMcp():
                await self._change(self.servers.named(root, request.server), request)
            case ReadMcp():
                return await self._read(self.servers.named(root, request.server), request)
        return None

    def _root(self, chat: str, cwd: str) -> Path:
        session = self._chats.get(chat)
        if session is not None:
            return session.root()
        return Path(self._services.settings.workspace.root or cwd or ".").expanduser()

    async def _change(self, server: Server, request: ChangeMcp) -> None:
        match request.what:
            case "start" | "restart":
                await server.restart()
            case "stop":
                await server.stop(off=True)
            case "offer" | "withhold":
                server.switch(request.tool, request.what == "offer")

    async def _take(self, argument: str, root: Path) -> SourceResult:
        """Return the resource that a message mentions as `server:URI`."""
        name, _, uri = argument.partition(":")
        if not uri:
            return SourceResult(error="it needs a server and an address, such as #{mcp:notes:note://today}")
        server = self.servers.named(root, name)
        given = await self._asked(server, "", ReadMcp(server=name, uri=uri))
        if not given.text.strip():
            return SourceResult(nothing="the resource has no text")
        return SourceResult(
            (EditorText(self.servers.hide(given.text), f"the resource {uri} of the MCP server {name}"),)
        )

    async def _asked(self, server: Server, chat: str, request: ReadMcp) -> Given:
        """Return a resource or a prompt, starting the server if necessary."""
        task = server.start()
        if task is not None:
            await asyncio.wait([task])
        limit_s = server.entry.settings.timeout_s
        if request.prompt:
            ask = lambda connection: connection.prompt(request.prompt, request.arguments, limit_s)  # noqa: E731
        else:
            ask = lambda connection: connection.read(request.uri, limit_s)  # noqa: E731
        given: Given = await server.ask(ask, limit_s, chat)
        return given

    async def _read(self, server: Server, request: ReadMcp) -> dict[str, Any]:
        given = await self._asked(server, request.chat, request)
        text = self.servers.hide(given.text)
        if not request.attach:
            return {"text": text, "images": len(given.images)}
        session = self._chats.get(request.chat)
        if session is None:
            raise InputError("The Python process no longer has this chat open; open it again.")
        path = f"mcp:{server.name}:{request.uri}"
        await session.attach(text_attachment("file", path, text, self._services.new_token()))
        return {"text": "", "images": len(given.images)}

    async def aclose(self) -> None:
        """Stop all servers."""
        await self.servers.aclose()
