"""Stores the sources of `/memories` notes: a note written beside outside text keeps that text's sources.

The table (file path → sources) is stored next to the folder, where the tool cannot write. All functions block.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import Source
from codecompanion.model.provenance import UNKNOWN, union
from codecompanion.store.durable_files import write_durably
from codecompanion.store.files.memory_places import PROJECTS
from codecompanion.store.lease import FileLock
from codecompanion.tools.builtin import MEMORY_SHARED

FILE_NAME = "memory-sources.json"
_Table = dict[str, tuple[Source, ...]]
_one_at_a_time = threading.Lock()


class MemorySources:
    """The table next to the memory folder. `project`: the project's identifier, "" = the tool sees the whole folder."""

    def __init__(self, memory_dir: Path, project: str = "") -> None:
        self._folder, self._path, self._project = memory_dir, memory_dir.with_name(FILE_NAME), project

    def of(self, virtual: str) -> tuple[Source, ...]:
        """Return the sources of a note; () if only the user and the model wrote it, unknown if the table is damaged."""
        return self._of(self._key(virtual))

    def of_files(self, names: Sequence[str]) -> tuple[tuple[Source, ...], ...]:
        """Return the sources of each file below the folder, as `of` does, but read the table only once."""
        table = self._read() if self._path.exists() else _Table()
        return tuple(table.get(_folded(name), ()) for name in names)

    def before_call(self, arguments: Mapping[str, Any], sources: Sequence[Source]) -> None:
        """Record the chat's current sources for the note that a memory call is about to write.

        The sources are recorded before the note is written, so a host killed between the two never leaves a note
        without its sources.

        Raises: OSError: the table cannot be written.
        """
        command = arguments.get("command")
        if command in ("view", "search", "delete") or (not sources and not self._path.exists()):
            return

        def change(table: _Table) -> None:
            if command == "rename":
                old, new = (self._key(str(arguments.get(name, ""))) for name in ("old_path", "new_path"))
                for key in _below(table, old):
                    _add(table, new + key.removeprefix(old), table[key])
            else:
                _add(table, self._key(str(arguments.get("path", ""))), sources)

        self._change(change)

    def after_call(self, arguments: Mapping[str, Any]) -> None:
        """Remove the entries of notes that a memory call has deleted or renamed.

        Raises: OSError: the table cannot be written.
        """
        gone = {"rename": "old_path", "delete": "path"}.get(str(arguments.get("command")))
        if gone is not None and self._path.exists():
            name = self._key(str(arguments.get(gone, "")))
            self._change(lambda table: [table.pop(key) for key in _below(table, name)])

    def before_file(self, path: Path, sources: Sequence[Source]) -> None:
        """Record the sources of a summary that will be written below the folder.

        Remove the entries of deleted summaries.

        Raises: OSError: the table cannot be written.
        """
        if not path.is_relative_to(self._folder) or (not sources and not self._path.exists()):
            return
        folder = _folded(path.parent.relative_to(self._folder).as_posix())
        there = {f"{folder}/{one.name.casefold()}" for one in path.parent.iterdir()} if path.parent.is_dir() else set()

        def change(table: _Table) -> None:
            for key in [key for key in table if key.startswith(f"{folder}/") and key not in there]:
                table.pop(key)
            _add(table, _folded(path.relative_to(self._folder).as_posix()), sources)

        self._change(change)

    def forget(self, path: Path) -> tuple[Source, ...]:
        """Remove the entry of a deleted file and return its sources.

        Raises: OSError: the table cannot be written.
        """
        if not path.is_relative_to(self._folder) or not self._path.exists():
            return ()
        key = _folded(path.relative_to(self._folder).as_posix())
        found = self._of(key)
        self._change(lambda table: table.pop(key, None))
        return found

    def _of(self, key: str) -> tuple[Source, ...]:
        return self._read().get(key, ()) if self._path.exists() else ()

    def _change(self, change: Callable[[_Table], object]) -> None:
        """Read, change and write the table under a lock, so that other Neovims wait."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _one_at_a_time, _locked(self._path.with_suffix(".lock")):
            table = self._read()
            if isinstance(table, _Unreadable):  # the entries of all other notes are lost
                table = {_folded(name): (UNKNOWN,) for name in self._names()}
            before = dict(table)
            change(table)
            if table != before:
                write_durably(self._path, msgspec.json.encode(table))

    def _names(self) -> Iterator[str]:
        for folder, _, files in os.walk(self._folder):
            for name in files:
                yield (Path(folder) / name).relative_to(self._folder).as_posix()

    def _key(self, virtual: str) -> str:
        """Return the table key of a path, resolved as the tool resolves it."""
        parts = [part for part in virtual.split("/") if part not in ("", ".")][1:]
        if parts[:1] == [MEMORY_SHARED] and self._project:
            return _folded("/".join(parts[1:]))
        return _folded("/".join([PROJECTS, self._project, *parts] if self._project else parts))

    def _read(self) -> _Table:
        try:
            return typed.read_json(self._path.read_bytes(), type=_Table)
        except FileNotFoundError:
            return {}
        except (OSError, *NOT_READABLE):
            return _Unreadable()


class _Unreadable(dict[str, tuple[Source, ...]]):
    """Stands in for a table that cannot be read: every note has an unknown source."""

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, (UNKNOWN,))


def _below(table: _Table, name: str) -> list[str]:
    """Return the keys of a note, or of the notes in a folder."""
    return [key for key in table if key == name or key.startswith(f"{name}/")]


def _add(table: _Table, key: str, sources: Sequence[Source]) -> None:
    if sources:
        table[key] = union(table.get(key, ()), sources)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of the table; raises `OSError` if another Neovim holds it for too long."""
    try:
        turn = FileLock(path)
    except sqlite3.Error as error:
        raise OSError(f"{path} is locked") from error
    try:
        yield
    finally:
        turn.release()


def _folded(name: str) -> str:
    """Return the table key of a path below the folder, in lower case for file systems that ignore case.

    Keys begin with `memories/`, as in tables of earlier versions.
    """
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # a table is JSON
    return os.path.normcase(f"memories/{name}" if name else "memories").casefold()
