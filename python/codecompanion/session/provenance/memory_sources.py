"""The sources of notes in `/memories`: a note written while outside text was in the chat keeps its sources (issue 20).

They are in a table beside the folder, where the tool cannot write: path below `/memories` → sources. All functions
block.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import Source
from codecompanion.model.provenance import UNKNOWN, union
from codecompanion.store.durable_files import write_durably

FILE_NAME = "memory-sources.json"
_Table = dict[str, tuple[Source, ...]]
_one_at_a_time = threading.Lock()


class MemorySources:
    """The table beside one folder of memories."""

    def __init__(self, memory_dir: Path) -> None:
        self._folder, self._path = memory_dir, memory_dir.with_name(FILE_NAME)

    def of(self, virtual: str) -> tuple[Source, ...]:
        """Return the sources of a note; () if only user and model wrote it, unknown if the table is damaged."""
        return self._read().get(_key(virtual), ()) if self._path.exists() else ()

    def note(self, arguments: Mapping[str, Any], sources: Sequence[Source]) -> None:
        """Record the effect of a call of the memory tool while text of these sources was in the chat.

        Raises: OSError: the table cannot be written.
        """
        command = arguments.get("command")
        if command == "view" or (not sources and not self._path.exists()):
            return
        with _one_at_a_time:
            table = self._read()
            before = dict(table)
            if command == "rename":
                old, new = (_key(str(arguments.get(name, ""))) for name in ("old_path", "new_path"))
                for key in [key for key in table if key == old or key.startswith(f"{old}/")]:
                    self._add(table, new + key.removeprefix(old), table.pop(key))
            elif command == "delete":
                table.pop(_key(str(arguments.get("path", ""))), None)
            else:
                self._add(table, str(arguments.get("path", "")), sources)
            if table != before:
                write_durably(self._path, msgspec.json.encode(table))

    def note_file(self, path: Path, sources: Sequence[Source]) -> None:
        """Record that a summary of text from these sources was written below the folder.

        Raises: OSError: the table cannot be written.
        """
        if path.is_relative_to(self._folder):
            written = f"/memories/{path.relative_to(self._folder).as_posix()}"
            self.note({"command": "create", "path": written}, sources)

    def _add(self, table: _Table, virtual: str, sources: Sequence[Source]) -> None:
        if sources:
            table[_key(virtual)] = union(table.get(_key(virtual), ()), sources)

    def _read(self) -> _Table:
        try:
            return typed.read_json(self._path.read_bytes(), type=_Table)
        except FileNotFoundError:
            return {}
        except (OSError, *NOT_READABLE):
            return _Unreadable()


class _Unreadable(dict[str, tuple[Source, ...]]):
    """A table that cannot be read: every note counts as from an unknown source."""

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, (UNKNOWN,))


def _key(virtual: str) -> str:
    """Return the path as the tool resolves it, in lower case for file systems that ignore case."""
    return os.path.normcase("/".join(part for part in virtual.split("/") if part not in ("", "."))).casefold()
