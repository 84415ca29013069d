"""Reads MCP server files of other programs: the project's `.mcp.json`, and Claude Desktop's.

`file_servers` decides whether their servers are used.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from codecompanion.errors import ConfigError
from codecompanion.session.mcp_config.files_in_commands import NamedFile, hash_with, named_files
from codecompanion.session.mcp_config.server_entries import MAX_FILE_BYTES, Entry, read_file
from codecompanion.session.trust.folders import folder_of
from codecompanion.settings_sections import McpSettings

NAME = ".mcp.json"


class ServerFile(msgspec.Struct, frozen=True):
    """A server file in its current state. `problem`: why none of its servers can be used, or "" if they can.

    `is_users`: the file belongs to the user, wherever it is. `text`: its content. `sha256` covers the file and the
    files of the folder named in its command lines.
    """

    path: Path
    sha256: str = ""
    entries: tuple[Entry, ...] = ()
    problem: str = ""
    is_users: bool = False
    text: str = ""
    named: tuple[NamedFile, ...] = ()

    @property
    def usable(self) -> tuple[Entry, ...]:
        """Return the servers that the file does not disable."""
        return tuple(entry for entry in self.entries if entry.settings.enabled)


def server_files(mcp: McpSettings, root: Path, environment: Mapping[str, str]) -> list[ServerFile]:
    """Return the existing server files, highest precedence first. Blocks briefly."""
    return [
        read_server_file(path, environment, is_users=is_users)
        for path, is_users in _places(mcp, root)
        if path.is_file()
    ]


def _places(mcp: McpSettings, root: Path) -> Iterator[tuple[Path, bool]]:
    if mcp.enabled and mcp.project_file:
        yield root / NAME, False
    if mcp.enabled and mcp.claude_desktop:
        yield claude_desktop_file(), True


def claude_desktop_file() -> Path:
    """Return the path of Claude Desktop's server file on this system."""
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


def read_server_file(path: Path, environment: Mapping[str, str], *, is_users: bool = False) -> ServerFile:
    """Read a server file. Blocks briefly."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        sha256 = hashlib.sha256(content).hexdigest()
        entries = tuple(read_file(path, content))
        named = () if is_users else named_files(entries, path.parent, folder_of(path.parent), environment)
        text = content.decode("utf-8", "replace")
        return ServerFile(path, hash_with(sha256, named), entries, is_users=is_users, text=text, named=named)
    except OSError as error:
        return ServerFile(path, problem=f"{path} cannot be read: {error.strerror}.", is_users=is_users)
    except ConfigError as error:
        return ServerFile(path, problem=f"{error}. None of its MCP servers is used.", is_users=is_users)
