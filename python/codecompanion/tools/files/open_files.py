"""The project's files that are open in the editor, and the interface for tools to change them (architecture.md).

Tools work on the text that the user sees: a loaded buffer's text takes precedence over the file. Texts have Unix line
endings; the editor handles a buffer's encoding and line endings. Without an editor (`NoEditor`) tools use the disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from codecompanion.errors import ToolError
from codecompanion.wire.requests import Diagnostic


class OpenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is loaded in the editor. `path` is its real path; `buffer` and `tick` identify this version of it.

    `text` is None if only the state was requested. `locked`: the buffer may not be changed (`modifiable` is off) or
    written (`readonly` is on).
    """

    path: str
    buffer: int
    tick: int
    modified: bool
    text: str | None = None
    locked: Literal["", "nomodifiable", "readonly"] = ""


class Opened(msgspec.Struct, frozen=True):
    """The files open in the editor at the last query. `silent`: it did not answer in time, so the disk is used."""

    files: Mapping[str, OpenFile] = {}
    silent: bool = False

    def at(self, path: Path) -> OpenFile | None:
        """Return the open file at a resolved path."""
        return self.files.get(str(path))


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a change in the editor.

    `written`: in the buffer and on disk. `unsaved`: in the buffer, which had unsaved changes before. `stale`: the
    buffer was changed in the meantime, so nothing was done. `refused`: nothing was changed, for the given `reason`.
    `unknown`: the editor did not answer. `text` is the buffer's content if it differs from the requested text (format
    on save).
    """

    state: Literal["written", "unsaved", "stale", "refused", "unknown"]
    text: str | None = None
    reason: str = ""


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a user's own tool that ran in the editor."""

    text: str
    is_error: bool = False


class Editor(Protocol):
    """The editor operations available to tools."""

    async def look(self, paths: Sequence[Path] | None) -> Opened:
        """Return the open files among the paths, with their contents; for None, return all files with unsaved changes.

        Open files without unsaved changes that changed on disk are reloaded first.
        """

    async def change(self, file: OpenFile, text: str, *, save: bool = True) -> Changed:
        """Make `text` the content of an open file, and write it if it had no unsaved changes before."""

    async def diagnostics(self) -> Sequence[Diagnostic] | None:
        """Return the current diagnostics of open files, or None if the editor does not answer."""

    async def reload(self, deleted: Path | None = None) -> None:
        """Reload open files without unsaved changes that changed on disk, without waiting.

        `deleted` is a file that was deleted on purpose: the editor does not have to warn about it.
        """

    async def run_tool(self, name: str, fields: Mapping[str, Any], limit_s: float) -> ToolAnswer:
        """Run a user's own tool in the editor; on cancellation, notify the editor that the result is not needed.

        Raises:
            ToolError: the editor did not answer in time or does not have the tool; the message gives the details.
        """


class NoEditor:
    """An `Editor` without an editor, for the command line and tests."""

    async def look(self, paths: Sequence[Path] | None) -> Opened:
        """Return no open files."""
        del paths
        return Opened()

    async def change(self, file: OpenFile, text: str, *, save: bool = True) -> Changed:
        """Change nothing."""
        del text, save
        return Changed(state="refused", reason=f"{file.path} is not open.")

    async def diagnostics(self) -> Sequence[Diagnostic] | None:
        """Return no diagnostics."""
        return ()

    async def reload(self, deleted: Path | None = None) -> None:
        """Do nothing."""

    async def run_tool(self, name: str, fields: Mapping[str, Any], limit_s: float) -> ToolAnswer:
        """Run nothing."""
        del fields, limit_s
        raise ToolError(f"{name} runs in the editor, but no editor is connected.")
