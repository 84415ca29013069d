"""The servers that a project brings along (`.mcp.json`), and those of Claude Desktop: used once the user agrees.

Asked by a block in the chat with every command line and address; nothing is started before. An answer holds for a
folder, a file and its content: once the file says something else it is asked again. "Once" is for this Neovim.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codecompanion.errors import ConfigError
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.plural import counted
from codecompanion.session.chat import Chat
from codecompanion.session.mcp.entries import Entry, read_file
from codecompanion.session.mcp.servers import McpServers
from codecompanion.store.store import durable
from codecompanion.wire.events import ApprovalRequested, Severity
from codecompanion.wire.requests import Approve

NAME = ".mcp.json"


class _Answers(msgspec.Struct, frozen=True):
    """File → sha256 of the content the user decided about, and what."""

    files: dict[str, tuple[str, bool]] = {}


def wanted_files(chat: Chat) -> list[Path]:
    """Return the files that are there and may be asked about. Blocks for a moment."""
    mcp = chat.services.settings.mcp
    places = [chat.root() / NAME] if mcp.project_file else []
    places += [claude_desktop_file()] if mcp.claude_desktop else []
    return [path for path in places if path.is_file()] if mcp.enabled else []


def claude_desktop_file() -> Path:
    """Return where Claude Desktop keeps its servers on this system."""
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


async def use_files(chat: Chat, servers: McpServers, files: Sequence[Path]) -> None:
    """Use the servers of files the user has agreed to, and ask about the others."""
    for path in files:
        try:
            content = await asyncio.to_thread(path.read_bytes)
            entries = read_file(path, content)
        except OSError as error:
            chat.notice(Severity.WARN, f"{path} cannot be read: {error.strerror}.")
            continue
        except ConfigError as error:
            chat.notice(Severity.WARN, f"{error}. None of its MCP servers is used.")
            continue
        sha256 = hashlib.sha256(content).hexdigest()
        known = (await asyncio.to_thread(_answers, chat)).files.get(str(path))
        if known is None or known[0] != sha256:
            _ask(chat, servers, path, sha256, entries)
        elif known[1]:
            _use(chat, servers, entries)


def _ask(chat: Chat, servers: McpServers, path: Path, sha256: str, entries: Sequence[Entry]) -> None:
    usable = [entry for entry in entries if entry.settings.enabled]
    if not usable:
        return

    async def take(given: Approve) -> None:
        allowed = given.decision in ("once", "always")
        if given.decision != "once":
            await _keep(chat, path, sha256, allowed=allowed)
        if allowed:
            _use(chat, servers, entries)
            names = ", ".join(entry.name for entry in usable)
            chat.notice(Severity.INFO, f"MCP servers that start with the next message: {names}.")
        else:
            chat.notice(Severity.INFO, f"Not used: the MCP servers of {path.name}; asked again when the file changes.")

    chat.desk.offer(
        ApprovalRequested(
            chat=chat.chat_id,
            call_id=f"mcp-{chat.services.new_token()}",
            name="mcp",
            title=f"let {path.name} start {counted(len(usable), 'MCP server')}?",
            body=servers.hide("\n".join(entry.line() for entry in usable)),
            kind="mcp",
        ),
        take,
    )


def _use(chat: Chat, servers: McpServers, entries: Sequence[Entry]) -> None:
    for entry in entries:
        servers.add(entry, chat.root())


def _key(chat: Chat) -> str:
    return f"mcp:{chat.root().resolve()}"


def _answers(chat: Chat) -> _Answers:
    try:
        return msgspec.json.decode(chat.services.store.load_permits(_key(chat)) or "{}", type=_Answers)
    except NOT_READABLE:
        return _Answers()  # to ask again is safe


async def _keep(chat: Chat, path: Path, sha256: str, *, allowed: bool) -> None:
    answers = await asyncio.to_thread(_answers, chat)
    kept = _Answers({**answers.files, str(path): (sha256, allowed)})
    await durable(chat.services.store.save_permits(_key(chat), msgspec.json.encode(kept).decode()))
