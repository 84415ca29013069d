"""The host's index of one project: updated from disk when it is used, and usable while it is being built.

`refresh` compares the index with the disk by `stat`, indexes unsaved buffers in place of their files, and writes small
changes itself. Large changes are left to a separate process (`worker`); until it has finished, outdated files are
listed, so that they can be searched as text. Nothing here blocks the event loop, and an unusable index raises no
errors: `state` gives the reason, and every file is listed as not indexed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from codecompanion.errors import StoreError
from codecompanion.formats.text_files import decode
from codecompanion.session.code.folder_listing import FolderListing
from codecompanion.session.code.index_process import IndexJob, WorkerProcess
from codecompanion.session.code.indexing import (
    Difference,
    compare,
    digest_of_text,
    index_text,
    write_changes,
)
from codecompanion.session.code.left_out_files import left_out_files
from codecompanion.store.code_index.index_tables import IndexUnusable, index_path
from codecompanion.store.code_index.index_writer import FROM_BUFFER, IndexWriter
from codecompanion.store.code_index.reader import IndexCounts, IndexReader
from codecompanion.workspace.paths import NOT_INDEXED, is_project
from codecompanion.workspace.project_files import (
    Choice,
    LeftOut,
    belongs,
    listed_among,
    read_project_file,
)
from codecompanion.workspace.secret_text import without_secrets
from codecompanion.workspace.text_search import files_with

_log = logging.getLogger(__name__)

MAX_OWN_FILES = 25
MAX_OWN_BYTES = 400_000
"""Maximum size in bytes of changes that the host writes itself; larger changes are written by the worker."""
MAX_COMPARED = 20_000
"""Maximum number of files that the host compares; in larger projects the worker compares them, and the host checks only
reported changes.
"""
COMPARE_AGAIN_S = 15.0
FAILED_AGAIN_S = 60.0
"""Seconds after a failed worker in which questions do not start another one, because a full disk stays full."""
WRITE_PATIENCE_S = 0.2
"""Seconds that a question waits to write newly saved files while a worker writes a batch."""
TEXT_SEARCH_S = 5.0
MAX_READ_FILES = 50
"""Maximum number of files searched in this process; larger numbers are searched by an external program."""

Phase = Literal["absent", "building", "ready", "unusable"]


class IndexState(msgspec.Struct, frozen=True):
    """The state of the index: `done` of `total` files while it is built, and `why` it cannot be used."""

    phase: Phase = "absent"
    done: int = 0
    total: int = 0
    why: str = ""


class Freshness(msgspec.Struct, frozen=True):
    """How up to date the index is.

    `pending`: files to be searched as text, because the index lacks their current content.

    If not `is_complete`, the index was never finished.
    """

    is_complete: bool = False
    pending: tuple[str, ...] = ()
    written: int = 0


class ProjectIndex:
    """The index of the folder `root`. Call it on the engine's event loop; the work runs in threads."""

    def __init__(
        self,
        root: Path,
        cache_dir: Path,
        choice: Choice | None = None,
        on_change: Callable[[IndexState], None] = lambda state: None,
    ) -> None:
        """Create the index object without reading anything.

        `on_change` is called on the event loop whenever `state` changes.
        """
        self.root = Path(os.path.realpath(root))
        self.choice = choice or Choice()
        self.path = index_path(cache_dir, self.root)
        self.reader = IndexReader(self.path)
        self.state = IndexState()
        self._on_change = on_change
        self._worker = WorkerProcess(self._take_progress)
        self._told: set[str] = set()
        self._unsaved: dict[str, str] = {}
        self._listing = FolderListing(self.root, self.choice)
        self._known: dict[str, tuple[int, int]] = {}
        self._known_version = -1
        self._compared_at = -COMPARE_AGAIN_S
        self._not_before = 0.0
        self._refreshing = asyncio.Lock()
        self._writing = threading.Lock()

    # ---- called by searches

    async def refresh(self, unsaved: Mapping[str, str] | None = None) -> Freshness:
        """Update the index from the disk and from unsaved buffers (path → text), as far as this is fast.

        The worker is started for the rest.
        """
        if not is_project(self.root):
            self._set(IndexState("unusable", why=NOT_INDEXED.format(root=self.root)))
            return Freshness()
        async with self._refreshing:
            self._unsaved = {path: text for path, text in (unsaved or {}).items() if belongs(path, self.choice)}
            try:
                freshness, is_much = await asyncio.to_thread(self._refresh)
            except (StoreError, OSError) as error:
                self._set(IndexState("unusable", why=f"The code is not indexed: {error}"))
                _log.warning("the index of %s cannot be used: %s", self.root, error)
                return Freshness(pending=await asyncio.to_thread(self._listed_paths))
        if is_much and time.monotonic() > self._not_before:
            await self.build()
        elif is_much:
            return freshness
        elif self.state.phase in ("absent", "unusable"):
            self._set(IndexState("ready"))
        return freshness

    def mark_changed(self, path: str) -> None:
        """Record that the editor wrote or removed a file (relative to the root), so that it is checked first."""
        self._told.add(path)

    # ---- read by searches; each blocks

    def read_text(self, path: str) -> str | None:
        """Return the text of a file as the user sees it: from its unsaved buffer, otherwise from disk."""
        if path in self._unsaved:
            text, why = without_secrets(self._unsaved[path], path)
            return None if why else text
        read = read_project_file(self.root, path, self.choice)
        return None if read.why_not else decode(read.content).text

    def files_with(self, words: Collection[str], paths: Sequence[str]) -> list[str]:
        """Return those of the `paths` whose files contain one of the words, ignoring case."""
        lowered = [word.lower() for word in words]
        read = set(paths) if len(paths) <= MAX_READ_FILES else {path for path in paths if path in self._unsaved}
        found = set[str]()
        for path in read:
            text = (self.read_text(path) or "").lower()
            if any(word in text for word in lowered):
                found.add(path)
        if len(paths) > MAX_READ_FILES:
            searched = files_with(self.root, sorted(words), self.choice, time_limit_s=TEXT_SEARCH_S)
            found.update(path for path in searched.paths if path not in self._unsaved)
        return [path for path in paths if path in found]

    # ---- the worker

    async def build(self, *, is_rebuild: bool = False) -> None:
        """Start the worker unless it is running; `state` shows its progress."""
        if self._worker.is_running and not is_rebuild:
            return
        self._set(IndexState("building"))
        job = IndexJob(os.fsencode(self.root), os.fsencode(self.path), self.choice, is_rebuild)
        why = await self._worker.start(job)
        if why:
            self._set(IndexState("unusable", why=why))

    async def wait(self) -> IndexState:
        """Wait until the worker has ended, and return the state."""
        await self._worker.wait()
        return self.state

    async def counts(self) -> IndexCounts:
        """Return the index's counts; all are 0 if there is no index."""
        try:
            return await asyncio.to_thread(self.reader.counts)
        except (StoreError, OSError):
            return IndexCounts()

    async def left_out(self) -> dict[str, LeftOut]:
        """Return the files that are not searched, by reason; they were left out by name or by content."""
        async with self._refreshing:
            try:
                return await asyncio.to_thread(self._left_out)
            except (StoreError, OSError) as error:
                _log.info("the files left out of %s are unknown: %s", self.root, error)
                return {}

    async def close(self) -> None:
        """Stop the worker and close the index file; batches already written are kept."""
        await self._worker.stop()
        await asyncio.to_thread(self.reader.close)

    # ---- in a thread

    def _refresh(self) -> tuple[Freshness, bool]:
        """Return how up to date the index is, and whether the worker must do the rest."""
        known = self._known_files()
        if not known:
            self._told.clear()
            return Freshness(False, self._listing.files().paths), True
        is_complete = self.reader.meta("complete") == "1"
        difference, is_partial = self._difference(known)
        buffers = self._changed_buffers(known)
        is_much = len(difference.changed) > MAX_OWN_FILES or self._bytes(difference) > MAX_OWN_BYTES
        own = Difference() if is_much else difference
        written = self._try_to_write(own, buffers)
        pending = [*(difference.changed if is_much or written is None else ()), *(buffers if written is None else ())]
        if not is_complete and self._is_large(known):
            pending += [path for path in self._listing.files().paths if path not in known]
        return Freshness(is_complete, tuple(dict.fromkeys(pending)), written or 0), is_much or is_partial

    def _left_out(self) -> dict[str, LeftOut]:
        by_content: list[tuple[str, str]] = []
        with contextlib.suppress(FileNotFoundError):
            by_content = self.reader.left_out()
        return left_out_files(self._listing.files().left_out_by_name, by_content)

    def _try_to_write(self, difference: Difference, buffers: Mapping[str, str]) -> int | None:
        """Write the changes.

        Return the number of files written, or None if a worker or another Neovim is writing, or the disk is full.
        """
        try:
            return self._write(difference, buffers)
        except IndexUnusable:
            raise
        except StoreError as error:
            _log.info("the index of %s cannot be written now: %s", self.root, error)
            return None

    def _is_large(self, known: Mapping[str, object]) -> bool:
        """Return whether checking every file would be noticeably slow."""
        return max(len(known), self._listing.last_count) > MAX_COMPARED

    def _known_files(self) -> dict[str, tuple[int, int]]:
        """Return the indexed files, or {} without a usable index."""
        try:
            version = self.reader.data_version()
            if version != self._known_version:
                self._known = self.reader.stats()
                self._known_version = version
            return self._known
        except (FileNotFoundError, IndexUnusable) as error:
            _log.info("no index of %s yet: %s", self.root, error)
            self._known, self._known_version = {}, -1
            return {}

    def _difference(self, known: Mapping[str, tuple[int, int]]) -> tuple[Difference, bool]:
        """Return the differences between index and disk, and whether the worker must compare the rest.

        Files with unsaved changes are ignored.
        """
        told, self._told = self._told, set()
        if self._is_large(known):
            there = {path: known[path] for path in {*told, *self._unsaved} if path in known}
            new = told - self._unsaved.keys() - known.keys()
            found = compare(self.root, (told & known.keys()) | listed_among(self.root, sorted(new), self.choice), there)
            is_due = time.monotonic() - self._compared_at > COMPARE_AGAIN_S
            if is_due:
                self._compared_at = time.monotonic()
            return self._without_unsaved(found), is_due and not self._worker.is_running
        return self._without_unsaved(compare(self.root, self._listing.files().paths, known)), False

    def _without_unsaved(self, found: Difference) -> Difference:
        if not self._unsaved:
            return found
        return Difference(
            tuple(path for path in found.changed if path not in self._unsaved),
            tuple(path for path in found.gone if path not in self._unsaved),
        )

    def _listed_paths(self) -> tuple[str, ...]:
        """Return all files, to be searched as text; none if the folder cannot be read."""
        try:
            return tuple(sorted(self._listing.files().paths))
        except (StoreError, OSError):
            return ()

    def _changed_buffers(self, known: Mapping[str, tuple[int, int]]) -> dict[str, str]:
        """Return path → text for unsaved buffers whose text is not in the index."""
        found = {}
        for path, text in self._unsaved.items():
            if path not in known and (self.root / path).exists():
                continue  # git ignores this file
            if known.get(path, (0, 0))[0] != FROM_BUFFER or self.reader.digest(path) != digest_of_text(text):
                found[path] = text
        return found

    def _bytes(self, difference: Difference) -> int:
        total = 0
        for path in difference.changed[:MAX_OWN_FILES]:
            try:
                total += min((self.root / path).stat().st_size, self.choice.max_bytes)
            except OSError:
                continue
        return total

    def _write(self, difference: Difference, buffers: Mapping[str, str]) -> int:
        """Write the differences to the index; return the number of files written."""
        if not (difference.changed or difference.gone or buffers):
            return 0
        with self._writing:
            writer = IndexWriter(self.path, self.root, WRITE_PATIENCE_S)
            try:
                done = write_changes(writer, self.root, difference, self.choice, time.time_ns, lambda done, total: None)
                writer.put((index_text(path, text) for path, text in buffers.items()), int(time.time()))
                return done + len(buffers)
            finally:
                writer.close()

    # ---- state

    def _take_progress(self, state: Literal["building", "ready", "unusable"], done: int, total: int, why: str) -> None:
        if state == "unusable" and self._worker.has_answered:
            self._not_before = time.monotonic() + FAILED_AGAIN_S
        self._set(IndexState(state, done, total, why))

    def _set(self, state: IndexState) -> None:
        if state != self.state:
            self.state = state
            self._on_change(state)
