"""Files of other programs that name MCP servers: the project's `.mcp.json`, and Claude Desktop's. Reading them alone.

What the user says of them is in `file_servers`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from codecompanion.errors import ConfigError
from codecompanion.session.mcp.entries import Entry, read_file
from codecompanion.settings_sections import McpSettings

NAME = ".mcp.json"


class ServerFile(msgspec.Struct, frozen=True):
    """A file as it is now. `problem`: the sentence why none of its servers can be used, "" when they can."""

    path: Path
    sha256: str = ""
    entries: tuple[Entry, ...] = ()
    problem: str = ""

    @property
    def usable(self) -> tuple[Entry, ...]:
        """Return the servers that the file does not switch off."""
        return tuple(entry for entry in self.entries if entry.settings.enabled)


def server_files(mcp: McpSettings, root: Path) -> list[ServerFile]:
    """Return the files that are there and may be asked about, the one that counts first first. Blocks for a moment."""
    return [_read(path) for path in _places(mcp, root) if path.is_file()]


def _places(mcp: McpSettings, root: Path) -> Iterator[Path]:
    if mcp.enabled and mcp.project_file:
        yield root / NAME
    if mcp.enabled and mcp.claude_desktop:
        yield claude_desktop_file()


def claude_desktop_file() -> Path:
    """Return where Claude Desktop keeps its servers on this system."""
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


def _read(path: Path) -> ServerFile:
    try:
        content = path.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        return ServerFile(path, sha256, tuple(read_file(path, content)))
    except OSError as error:
        return ServerFile(path, problem=f"{path} cannot be read: {error.strerror}.")
    except ConfigError as error:
        return ServerFile(path, problem=f"{error}. None of its MCP servers is used.")
