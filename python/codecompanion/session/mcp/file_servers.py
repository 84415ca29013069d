"""Runs the MCP servers of a project (`.mcp.json`) once the user trusts the file.

`session.trust` decides about a folder, or about a file and its content. The servers of an untrusted file are not
started, and running ones are stopped. The files are checked before each request, so that revoking trust in another
chat or Neovim stops servers here too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from codecompanion.session.actions.follow_trust import show_waiting_files
from codecompanion.session.chat.chat import Chat
from codecompanion.session.mcp.servers import McpServers
from codecompanion.session.mcp_config.project_file import ServerFile, server_files
from codecompanion.session.mcp_config.server_entries import Entry
from codecompanion.session.services import Services
from codecompanion.wire.events import Severity


class FileServers:
    """Keeps the servers defined in files, by folder. `chats`: the open chats by id."""

    def __init__(self, servers: McpServers, services: Services, chats: Callable[[], Mapping[str, Chat]]) -> None:
        self._servers, self._services, self._chats = servers, services, chats
        self._files: dict[Path, list[tuple[ServerFile, bool]]] = {}
        self._told: set[str] = set()
        self._lock = asyncio.Lock()

    async def look(self, chat: Chat) -> None:
        """Read the files of a chat's folder again; start trusted servers, stop the others."""
        async with self._lock:
            changed = await self._look(chat, chat.root())
        if changed and not chat.control.purpose:
            await show_waiting_files(chat)

    async def _look(self, chat: Chat, root: Path) -> bool:
        """Update the servers; return whether a file or its trust has changed."""
        before = self._files.get(root, [])
        found = await self._read(root)
        if not found and not before:
            return False
        self._files[root] = found
        used: dict[str, Entry] = {}
        for file, is_trusted in found:
            if file.problem and file.problem not in self._told:
                self._told.add(file.problem)
                chat.notice(Severity.WARN, file.problem)
            if is_trusted:
                for entry in file.entries:
                    used.setdefault(entry.name, entry)
        self._report_ended(root, self._servers.use_of_files(root, used.values()), before, found)
        return before != found

    async def _read(self, root: Path) -> list[tuple[ServerFile, bool]]:
        """Return the server files of a folder as they are now, each with whether its servers may be used."""
        files = await asyncio.to_thread(server_files, self._services.settings.mcp, root, self._services.environment)
        trust = self._services.trust
        return [
            (file, await asyncio.to_thread(trust.allows, root, file.path, file.sha256, runs=True)) for file in files
        ]

    def _report_ended(
        self,
        root: Path,
        ended: list[Entry],
        before: list[tuple[ServerFile, bool]],
        found: list[tuple[ServerFile, bool]],
    ) -> None:
        """Tell every chat in the folder that tools are gone, and why."""
        waits = {str(file.path): file for file, is_trusted in found if not is_trusted}
        earlier = {str(file.path): file for file, _ in before}
        for source in dict.fromkeys(entry.source for entry in ended):
            names = [entry.name for entry in ended if entry.source == source]
            file = Path(source).name
            why = f"{file} no longer lists {'it' if len(names) == 1 else 'them'}"
            if source in waits:
                why = _why_not_trusted(earlier.get(source), waits[source])
            self._tell(root, f"Stopped MCP server{'s' if len(names) > 1 else ''} {', '.join(names)}: {why}.")

    def _tell(self, root: Path, sentence: str) -> None:
        for chat in self._chats().values():
            if chat.root() == root and not chat.control.purpose:
                chat.notice(Severity.INFO, sentence)

    # ---- the page

    async def files(self, root: Path) -> list[dict[str, Any]]:
        """Return the server files of a folder as shown on the status page."""
        return [
            {
                "path": str(file.path),
                "trusted": is_trusted,
                "servers": [entry.name for entry in file.usable],
                "problem": file.problem,
            }
            for file, is_trusted in await self._read(root)
        ]


def _why_not_trusted(before: ServerFile | None, now: ServerFile) -> str:
    if before is None or before.sha256 == now.sha256:
        return f"{now.path.name} is no longer trusted"
    if before.text != now.text:
        return f"{now.path.name} has changed since you trusted it"
    changed = min(one.path for one in set(before.named) ^ set(now.named))
    return f"{Path(changed).name} has changed since you trusted {now.path.name}"
