"""Lists everything remembered about a project: the user's files, notes by models, summaries and daily logs.

The project's own files are used once the user trusts them. Private summaries are listed, but never sent to a
model (R-449). All methods except the constructor block; they may be called from any thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from heapq import nlargest
from pathlib import Path

import msgspec

from codecompanion.errors import CodeCompanionError
from codecompanion.formats import text_files
from codecompanion.formats.regex import regex
from codecompanion.memory.entries import (
    Entry,
    Origin,
    Scope,
    first_line,
    hide_in_entry,
    parse_memories,
    read_note,
    title_of,
)
from codecompanion.model.messages import Source
from codecompanion.model.provenance import FILE
from codecompanion.session.provenance.memory_sources import MemorySources
from codecompanion.session.trust.folders import folder_of
from codecompanion.session.trust.trust import Trust, sha256_of
from codecompanion.settings_sections import GatheredMemorySettings
from codecompanion.store.files.daily_log import kit_folder
from codecompanion.store.files.memory_files import MemoryFiles, why_refused
from codecompanion.store.files.memory_places import MemoryFile, mark_of
from codecompanion.tools.builtin import MEMORY_ROOT, MEMORY_SHARED
from codecompanion.tools.memory_interface import FoundMemory
from codecompanion.workspace.paths import Workspace
from codecompanion.workspace.secret_text import hide_secrets

MAX_FILE_BYTES = 800_000
MAX_BYTES = 32_000_000
"""Maximum number of bytes that one search reads; the newest files are read first."""
HEAD_BYTES = 4_096
"""Bytes read from a file for its title and first line."""
MAX_KIT_LOGS = 60
_DAY = regex(r"\d{4}-\d\d-\d\d")
_NOTHING_STOPS: Callable[[], None] = lambda: None  # noqa: E731
_WRITERS: dict[Origin, str] = {"you": "written by the user", "model": "note", "compaction": "summary"}


class ProjectMemory:
    """The memory of the project that a workspace belongs to."""

    def __init__(
        self,
        files: MemoryFiles,
        exclusions: Sequence[re.Pattern[str]],
        own: GatheredMemorySettings,
        trust: Trust,
        root: Path,
    ) -> None:
        """Initialise the memory; `own` are the settings that name the user's own files."""
        self._files, self._exclusions, self._own, self._trust, self._root = files, exclusions, own, trust, root
        self.mark = mark_of(folder_of(root))
        """The project's identifier, used as the name of its folders."""

    @property
    def folder(self) -> Path:
        """Return the folder of the project's notes, which the tool sees as `/memories`."""
        return self._files.places.project_dir(self.mark)

    def has_any(self) -> bool:
        """Return whether there may be entries; checks only a few paths."""
        user, project = self.users_files()
        return any(one is not None and one.is_file() for one in (user, project)) or self._has_files()

    def entries(
        self, *, whole: bool = True, everything: bool = False, check: Callable[[], None] = _NOTHING_STOPS
    ) -> list[Entry]:
        """Return all entries: the user's first, then the others, newest first.

        Without `whole`, only the start of each file is read, except for the user's. `everything`: include all projects.

        Raises:
            StoreUnavailable: a folder cannot be read.
        """
        files = self._files.places.find(self.mark, self._root, everything=everything)
        return self._read_files(files, whole=whole, check=check)

    def newest(self, most: int) -> tuple[list[Entry], int]:
        """Return the user's entries plus the newest notes and summaries (up to `most` each), and the number left out.

        Raises:
            StoreUnavailable: a folder cannot be read.
        """
        files = self._files.places.find(self.mark, self._root)
        notes = [one for one in files if one.origin == "model"][:most]
        summaries = [one for one in files if one.origin == "compaction" and not one.is_private][:most]
        public = sum(not one.is_private for one in files)
        return self._read_files([*notes, *summaries]), public - len(notes) - len(summaries)

    def _read_files(
        self, files: Sequence[MemoryFile], *, whole: bool = True, check: Callable[[], None] = _NOTHING_STOPS
    ) -> list[Entry]:
        found, room = [*self._users(), *self._logs_of_workspace()], MAX_BYTES
        sources = self._sources().of_files([one.name or "-" for one in files])
        for file, of in zip(files, sources, strict=True):
            check()
            most = MAX_FILE_BYTES if whole else HEAD_BYTES
            if file.size and room >= 0:
                text = self._files.read(file, most)
                text = "" if "\0" in text else text  # a binary file
                room -= min(file.size, most)
                found.append(self._entry(file, text, of if file.name else ()))
        return found

    def may_use_folder(self) -> bool:
        """Return whether one of the project's own files may be used."""
        _, project = self.users_files()
        paths = [*([project] if project is not None else []), *self._kit_logs()]
        return any(content is not None and self._may_use(path, content) for path in paths if (content := _read(path)))

    def unused_files(self) -> list[str]:
        """Return a sentence for each existing file of the user or the project that is not used."""
        user, project = self.users_files()
        found, waiting = [], []
        for path in [one for one in (user, project) if one is not None and os.path.lexists(one)]:
            try:
                content = text_files.read_bytes(path.resolve(), MAX_FILE_BYTES)
            except (CodeCompanionError, OSError, RuntimeError) as error:
                found.append(f"Not used: {error}")
            else:
                waiting += [path] if path == project and not self._may_use(path, content) else []
        logs = [path for path in self._kit_logs() if (log := _read(path)) and not self._may_use(path, log)]
        names = [str(path.relative_to(self._root)) for path in [*waiting, *logs[:1]] if path.is_relative_to(self._root)]
        more = f" and {len(logs) - 1:,} more" if len(logs) > 1 else ""
        return [*found, *([f"Not used until trusted: {', '.join(names)}{more}"] if names else [])]

    def count_others(self) -> int:
        """Return the number of entries of other projects."""
        return self._files.places.count(frozenset(self._files.places.marks()) - {self.mark})

    # ---- used by the `memory` tool

    def shared_dir(self) -> Path | None:
        """Return the folder of the notes for all projects."""
        return self._files.places.memory_dir

    def changing(self) -> AbstractContextManager[None]:
        """Hold the lock of the notes."""
        return self._files.changing()

    def why_refused(self, text: str) -> str:
        """Return why this text may not be remembered (R-449), or "" if it may."""
        return why_refused([text], self._exclusions)

    def search(self, query: str, check: Callable[[], None]) -> tuple[FoundMemory, ...]:
        """Return the entries that match a query, best first, with secrets removed."""
        from codecompanion.memory.search_entries import search  # not needed at startup

        entries = (one for one in self.entries(check=check) if not one.is_private)
        hits = search(entries, query)
        heads = [msgspec.structs.replace(hit.entry, text=hit.entry.text[:HEAD_BYTES]) for hit in hits]
        shown = [hide_in_entry(head, hide_secrets) for head in heads]
        return tuple(
            FoundMemory(
                place=hit.entry.name or _WRITERS[hit.entry.origin],
                title=entry.title if entry.title != entry.name else "",
                day=f"{datetime.fromtimestamp(hit.entry.time).astimezone():%Y-%m-%d}",
                lines=tuple(map(hide_secrets, hit.lines)),
                sources=hit.entry.sources,
            )
            for hit, entry in zip(hits, shown, strict=True)
        )

    # ---- inside

    def _sources(self) -> MemorySources:
        return MemorySources(self._files.places.memory_dir, self.mark)

    def _has_files(self) -> bool:
        return self._files.places.has_any(self.mark, self._root) or kit_folder(self._root).is_dir()

    def users_files(self) -> tuple[Path | None, Path | None]:
        """Return the user's file for all projects and the project's file; None for a file that is not used."""
        settings = self._own
        if not settings.enabled:
            return None, None
        try:
            project = Workspace(self._root).resolve(settings.project) if settings.project else None
        except CodeCompanionError:  # a link that leads out of the project
            project = None
        return Path(settings.user).expanduser() if settings.user else None, project

    def _users(self) -> Iterator[Entry]:
        user, project = self.users_files()
        if user is not None:
            yield from self._entries_in(user, "user", lambda content: True)
        if project is not None:
            yield from self._entries_in(project, "project", lambda content: self._may_use(project, content))

    def _entries_in(self, path: Path, scope: Scope, may_use: Callable[[bytes], bool]) -> Iterator[Entry]:
        content = _read(path)
        if content is None or not may_use(content):
            return
        time = path.stat().st_mtime
        sources: tuple[Source, ...] = (FILE,) if scope == "project" else ()
        for one in parse_memories(text_files.decode(content).text, scope):
            text = one.content or one.title
            yield Entry(
                origin="you", scope=scope, title=title_of(one), text=text, time=time, path=str(path), line=one.line,
                sources=sources,
            )  # fmt: skip

    def _logs_of_workspace(self) -> Iterator[Entry]:
        """Yield the trusted daily logs in the workspace."""
        for path in self._kit_logs():
            content = _read(path)
            if content is not None and self._may_use(path, content):
                file = MemoryFile(path, path.stat().st_mtime, len(content), "compaction", self.mark, is_log=True)
                entry = self._entry(file, text_files.decode(content).text, (FILE,))
                yield msgspec.structs.replace(entry, is_ours=False)

    def _kit_logs(self) -> list[Path]:
        folder = kit_folder(self._root)
        try:
            found = [one for one in folder.glob("*.md") if not one.is_symlink()]
            return nlargest(MAX_KIT_LOGS, found, key=lambda one: (_DAY.fullmatch(one.stem) is not None, one.name))
        except OSError:
            return []

    def _may_use(self, path: Path, content: bytes) -> bool:
        return self._trust.allows(self._root, path.resolve(), sha256_of(content))

    def _entry(self, file: MemoryFile, text: str, sources: tuple[Source, ...]) -> Entry:
        name = self._name(file)
        title, body, chat = read_note(text, name or file.path.name)
        if file.is_log:
            title, body = f"Daily log {file.path.stem}", text
        elif file.origin == "model" and title == name:
            title = first_line(body) or name
        return Entry(
            origin=file.origin, scope="project" if file.project else "user", title=title, text=body, time=file.time,
            path=str(file.path), name=name, chat=chat, is_private=file.is_private, is_ours=True, sources=sources,
        )  # fmt: skip

    def _name(self, file: MemoryFile) -> str:
        """Return the path of a file as the memory tool sees it, or "" if the tool cannot view it."""
        if not file.name or (file.project and file.project != self.mark):
            return ""
        below = file.path.relative_to(self.folder if file.project else self._files.places.memory_dir).as_posix()
        return f"{MEMORY_ROOT}/{below}" if file.project else f"{MEMORY_ROOT}/{MEMORY_SHARED}/{below}"


def _read(path: Path) -> bytes | None:
    """Return the content of a file written by a person, or None if it does not exist or is too large."""
    try:
        return text_files.read_bytes(path.resolve(), MAX_FILE_BYTES) if path.is_file() else None
    except (CodeCompanionError, OSError):
        return None
