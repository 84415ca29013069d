"""Finds the project of a file and keeps its index up to date in the background (R-239)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from codecompanion.session.code.project_indexes import choice_of
from codecompanion.session.complete.project_view import ProjectReader
from codecompanion.session.services import Services
from codecompanion.tools.files.open_files import Opened
from codecompanion.workspace.paths import is_project
from codecompanion.workspace.secret_files import is_secret

_log = logging.getLogger(__name__)
REFRESH_EVERY_S = 20.0
MAX_PROJECTS = 3
"""Maximum number of projects whose snippets are cached."""
_MARKS = (".git", ".hg", ".jj", ".svn")


class Projects:
    """The projects of an editor. A folder under version control is indexed at the first completion in it."""

    def __init__(self, services: Services, clock: Callable[[], float]) -> None:
        self._services, self._clock = services, clock
        self._readers: dict[Path, ProjectReader] = {}
        self._refreshed: dict[Path, float] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._looked: tuple[Path, str] | None = None
        self._place: tuple[tuple[str, str], tuple[Path, str] | None] = (("", ""), None)

    async def find(self, path: str, cwd: str) -> tuple[ProjectReader, str] | None:
        """Return the project of a file and the file's path in it, or None if there is no project."""
        folder = self._services.settings.workspace.root or cwd
        if not folder or not path:
            return None
        asked = (folder, path)
        if self._place[0] != asked:
            self._place = (asked, await asyncio.to_thread(_place, folder, path))
        found = self._place[1]
        if found is None:
            return None
        root, name = found
        reader = self._readers.get(root)
        indexes = self._services.indexes
        if indexes is not None:
            index = await indexes.of(root, choice_of(self._services.settings.context))
            if reader is None or not reader.reads(index.reader):
                reader = ProjectReader(root, index.reader, is_secret)
        elif reader is None:
            reader = ProjectReader(root, None, is_secret)
        self._readers.pop(root, None)
        self._readers[root] = reader
        if len(self._readers) > MAX_PROJECTS:
            del self._readers[next(iter(self._readers))]
        if self._services.settings.completion.project:
            self._refresh(reader, name)
        return reader, name

    async def aclose(self) -> None:
        """Stop background work; the indexes belong to the host."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)

    def _refresh(self, reader: ProjectReader, path: str) -> None:
        """Update the index in the background, periodically and when the user moves to another file."""
        if self._refreshing is not None and not self._refreshing.done():
            return
        is_elsewhere = self._looked != (reader.root, path)
        is_due = self._clock() - self._refreshed.get(reader.root, -REFRESH_EVERY_S) >= REFRESH_EVERY_S
        if is_elsewhere or is_due:
            self._looked = (reader.root, path)
            self._refreshed[reader.root] = self._clock()
            self._refreshing = asyncio.ensure_future(self._follow(reader, is_elsewhere))

    async def _follow(self, reader: ProjectReader, is_elsewhere: bool) -> None:
        """Update the index from the disk and from unsaved buffers.

        The editor is asked for unsaved buffers only when the user has just moved to another file, not while typing,
        because the buffers may be large.
        """
        root = reader.root
        try:
            if is_elsewhere:
                opened = await self._services.editor.look(None)
                if not opened.silent:
                    await asyncio.to_thread(reader.lay_over, _unsaved_below(root, opened))
            indexes = self._services.indexes
            if indexes is None:
                return
            index = await indexes.of(root)
            is_project = any((root / mark).exists() for mark in _MARKS)
            if is_project or await asyncio.to_thread(index.path.exists):
                freshness = await index.refresh(await asyncio.to_thread(reader.unsaved))
                if freshness.written:
                    reader.note_change()
        except Exception:
            _log.exception("the index of %s could not be refreshed", root)


def _unsaved_below(root: Path, opened: Opened) -> dict[str, str]:
    """Return {path: text} of changed buffers below the root."""
    base = f"{root}/"
    return {
        path.removeprefix(base): file.text
        for path, file in opened.files.items()
        if path.startswith(base) and file.modified and file.text is not None
    }


def _place(folder: str, path: str) -> tuple[Path, str] | None:
    """Return the project's root and the file's path in it, or None if the file is not in a project."""
    try:
        root = Path(os.path.realpath(Path(folder).expanduser()))
        inside = Path(os.path.realpath(root / path))
    except (OSError, ValueError, RuntimeError):  # a null character, a symlink loop, or no home folder
        return None
    if not is_project(root) or not inside.is_relative_to(root):
        return None
    return root, inside.relative_to(root).as_posix()
