"""Reads a project's file of MCP servers, `.mcp.json`, as other programs write it.

`file_servers` decides whether their servers are used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
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

    `text`: its content. `sha256` covers the file and the files of the folder named in its command lines.
    """

    path: Path
    sha256: str = ""
    entries: tuple[Entry, ...] = ()
    problem: str = ""
    text: str = ""
    named: tuple[NamedFile, ...] = ()

    @property
    def usable(self) -> tuple[Entry, ...]:
        """Return the servers that the file does not disable."""
        return tuple(entry for entry in self.entries if entry.settings.enabled)


def server_files(mcp: McpSettings, root: Path, environment: Mapping[str, str]) -> list[ServerFile]:
    """Return the server file of a folder if it exists and is used. Blocks briefly."""
    path = root / NAME
    return [read_server_file(path, environment)] if mcp.enabled and mcp.project_file and path.is_file() else []


def read_server_file(path: Path, environment: Mapping[str, str]) -> ServerFile:
    """Read a server file. Blocks briefly."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        sha256 = hashlib.sha256(content).hexdigest()
        entries = tuple(read_file(path, content))
        named = named_files(entries, path.parent, folder_of(path.parent), environment)
        text = content.decode("utf-8", "replace")
        return ServerFile(path, hash_with(sha256, named), entries, text=text, named=named)
    except OSError as error:
        return ServerFile(path, problem=f"{path} cannot be read: {error.strerror}.")
    except ConfigError as error:
        return ServerFile(path, problem=f"{error}. None of its MCP servers is used.")
