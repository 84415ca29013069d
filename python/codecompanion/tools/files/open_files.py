"""What of the project is open in the editor, and the door through which tools change it (architecture.md).

What the user sees is what tools work on: the text of a loaded buffer counts, not the file it came from. Texts have Unix
line ends; encoding and line ends of a buffer are the editor's business. Without an editor (`NoEditor`) the disk counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from codecompanion.errors import ToolError
from codecompanion.wire.requests import Diagnostic


class OpenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is loaded in the editor. `path` is its real path, `buffer` and `tick` say which state of it this is.

    `text` is None where only the state was asked for. `locked`: the buffer may not be changed (`modifiable` is off) or
    not be written (`readonly` is on).
    """

    path: str
    buffer: int
    tick: int
    modified: bool
    text: str | None = None
    locked: Literal["", "nomodifiable", "readonly"] = ""


class Opened(msgspec.Struct, frozen=True):
    """What was open when the editor was asked. `silent`: it did not answer in time, so the disk counts."""

    files: Mapping[str, OpenFile] = {}
    silent: bool = False

    def at(self, path: Path) -> OpenFile | None:
        """Return the open file at a resolved path."""
        return self.files.get(str(path))


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a change in the editor.

    `written`: in the buffer and on disk. `unsaved`: in the buffer, which had unsaved changes before. `stale`: the
    buffer is not what it was; nothing was changed. `refused`: nothing was changed, `reason` says why. `unknown`: the
    editor did not answer. `text` is what the buffer holds now when that is not what was asked for (format on save).
    """

    state: Literal["written", "unsaved", "stale", "refused", "unknown"]
    text: str | None = None
    reason: str = ""


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool of the user's own said that ran in the editor."""

    text: str
    is_error: bool = False


class Editor(Protocol):
    """The editor, as tools may ask it."""

    async def look(self, paths: Sequence[Path] | None) -> Opened:
        """Return which of the paths are open, with their texts; None asks for all files with unsaved changes.

        Open files without unsaved changes that changed on disk are loaded again first.
        """

    async def change(self, file: OpenFile, text: str, *, save: bool = True) -> Changed:
        """Make `text` the content of an open file, and write it when it had no unsaved changes before."""

    async def diagnostics(self) -> Sequence[Diagnostic] | None:
        """Return what language servers and linters say of open files now, None where the editor does not answer."""

    async def reload(self, deleted: Path | None = None) -> None:
        """Load again what changed on disk below open files without unsaved changes. Does not wait for it.

        `deleted` is a file that was deleted on purpose: the editor need not warn of that.
        """

    async def run_tool(self, name: str, fields: Mapping[str, Any], limit_s: float) -> ToolAnswer:
        """Run a tool of the user's own in the editor; it is told when nobody waits for it any more.

        Raises:
            ToolError: the editor did not answer in time, or does not have it; says what is known.
        """


class NoEditor:
    """Nobody has anything open: the command line, and tests."""

    async def look(self, paths: Sequence[Path] | None) -> Opened:
        """Return that nothing is open."""
        del paths
        return Opened()

    async def change(self, file: OpenFile, text: str, *, save: bool = True) -> Changed:
        """Change nothing."""
        del text, save
        return Changed(state="refused", reason=f"{file.path} is not open.")

    async def diagnostics(self) -> Sequence[Diagnostic] | None:
        """Return that nobody says anything."""
        return ()

    async def reload(self, deleted: Path | None = None) -> None:
        """Do nothing."""

    async def run_tool(self, name: str, fields: Mapping[str, Any], limit_s: float) -> ToolAnswer:
        """Run nothing."""
        del fields, limit_s
        raise ToolError(f"{name} runs in the editor, and there is none.")
