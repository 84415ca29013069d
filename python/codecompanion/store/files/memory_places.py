"""Locates and lists the memory files (R-447, R-448, R-550).

    memories/                                 notes for every project, and files of earlier versions
    memories/projects/<mark>/                 notes of one project
    memories/projects/<mark>/summaries/       summaries written by compactions
    <state>/private-memories/<mark>/          summaries that look sensitive; no tool reads them (R-449)
    <state>/daily/<mark>/                     daily logs of a workspace without `.cowork`

`<mark>` is the name of the project's folder and a hash of its path. Symbolic links are not followed. All functions
block.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from heapq import nlargest
from pathlib import Path
from typing import Literal

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.store.sqlite_connection import translate_errors

PROJECTS, SUMMARIES, PRIVATE_FOLDER, DAILY_FOLDER = "projects", "summaries", "private-memories", "daily"
MAX_FILES = 10_000
"""Maximum number of memory files read, the newest first."""
MAX_DEPTH = 6
_UNSAFE = regex(r"[^A-Za-z0-9_.-]")


class MemoryFile(msgspec.Struct, frozen=True):
    """A memory file. `time`: when it was last written (seconds since the epoch); `size` in bytes.

    `project`: the mark of its project, "" = for every project, or from before projects were recorded. `name`: the path
    below `memories`, with `/` ("" = elsewhere). `is_log`: whether it is a daily log.
    """

    path: Path
    time: float
    size: int
    origin: Literal["model", "compaction"]
    project: str = ""
    name: str = ""
    is_private: bool = False
    is_log: bool = False


def mark_of(folder: Path) -> str:
    """Return the name of a project's folders: its own name and a hash of its path."""
    name = _UNSAFE.sub("_", folder.name)[:60] or "root"
    return f"{name}-{hashlib.sha256(str(folder).encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


class MemoryPlaces(msgspec.Struct, frozen=True):
    """The folders of the memory. `memory_dir` belongs to the `memory` tool, `state_dir` only to the plugin."""

    memory_dir: Path
    state_dir: Path

    def project_dir(self, mark: str) -> Path:
        """Return the folder of a project's notes."""
        return self.memory_dir / PROJECTS / mark

    def summaries(self, mark: str, *, private: bool) -> Path:
        """Return the folder of a project's summaries."""
        return self.state_dir / PRIVATE_FOLDER / mark if private else self.project_dir(mark) / SUMMARIES

    def find(self, mark: str, root: Path, *, everything: bool = False) -> list[MemoryFile]:
        """Return the newest memory files of a project and those shared by all projects, newest first.

        `root`: the workspace of the daily log; `everything`: include the files of all projects.

        Raises:
            StoreUnavailable: a folder cannot be read.
        """
        with translate_errors(self.memory_dir):
            found = nlargest(MAX_FILES, self._all("" if everything else mark, root), key=lambda one: one.time)
        return found

    def marks(self) -> list[str]:
        """Return the marks of the projects that have notes or summaries.

        Raises:
            StoreUnavailable: a folder cannot be read.
        """
        folders = (self.memory_dir / PROJECTS, self.state_dir / PRIVATE_FOLDER)
        with translate_errors(self.memory_dir):
            return sorted({one.name for folder in folders for one in _folders_in(folder)})

    def count(self, marks: Collection[str]) -> int:
        """Return the number of notes and summaries of these projects, without daily logs."""
        folders = [folder for one in marks for folder in (self.project_dir(one), self.summaries(one, private=True))]
        with translate_errors(self.memory_dir):
            return sum(1 for folder in folders for _ in _files(folder))

    def has_any(self, mark: str, root: Path) -> bool:
        """Return whether the project may have a memory file; checks only a few folders.

        Raises:
            StoreUnavailable: a folder cannot be read.
        """
        with translate_errors(self.memory_dir):
            if self.project_dir(mark).is_dir() or (self.state_dir / DAILY_FOLDER / mark_of(root)).is_dir():
                return True
            return any(entry.name != PROJECTS for entry in _entries(self.memory_dir))

    def _all(self, mark: str, root: Path) -> Iterator[MemoryFile]:
        """Yield the shared files and those of one project, or of all projects if `mark` is ""."""
        for path, status in _files(self.memory_dir, skip=PROJECTS):
            yield self._below_memories(path, status, "")
        for one in [mark] if mark else self.marks():
            for path, status in _files(self.project_dir(one)):
                yield self._below_memories(path, status, one)
            for path, status in _files(self.summaries(one, private=True)):
                yield MemoryFile(path, status.st_mtime, status.st_size, "compaction", one, is_private=True)
        for path, status in _files(self.state_dir / PRIVATE_FOLDER, depth=1):
            yield MemoryFile(path, status.st_mtime, status.st_size, "compaction", is_private=True)
        log = self.state_dir / DAILY_FOLDER / (mark_of(root) if mark else "")
        for path, status in _files(log):
            of = mark or path.parent.name
            yield MemoryFile(path, status.st_mtime, status.st_size, "compaction", of, is_log=True)

    def _below_memories(self, path: Path, status: os.stat_result, mark: str) -> MemoryFile:
        name = path.relative_to(self.memory_dir).as_posix()
        top = self.project_dir(mark) if mark else self.memory_dir
        is_summary = path.parent == top / SUMMARIES
        origin: Literal["model", "compaction"] = "compaction" if is_summary else "model"
        return MemoryFile(path, status.st_mtime, status.st_size, origin, mark, name)


def _files(folder: Path, skip: str = "", depth: int = MAX_DEPTH) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files below a folder, except hidden files, drafts and links; `skip` names a direct subfolder."""
    for entry in _entries(folder):
        if entry.name == skip or entry.name.startswith(".") or entry.name.endswith(".new"):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # another Neovim has just deleted it
            continue
        if stat.S_ISDIR(status.st_mode) and depth > 1:
            yield from _files(Path(entry.path), depth=depth - 1)
        elif stat.S_ISREG(status.st_mode):
            yield Path(entry.path), status


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except (FileNotFoundError, NotADirectoryError):
        return


def _folders_in(folder: Path) -> Iterator[os.DirEntry[str]]:
    return (one for one in _entries(folder) if one.is_dir(follow_symlinks=False))
