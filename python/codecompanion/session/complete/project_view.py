"""Reads a project for completion: its code index if there is one, and a few of its files.

Blocks for some milliseconds: call it in a thread. Without an index, it uses the files that were edited or visited, and
files in the same folder. Files that are outside the root, contain secrets (R-266), or are too large are not read.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from codecompanion.completion.near_names import strongest
from codecompanion.completion.project_knowledge import ProjectFile, ProjectView
from codecompanion.completion.prompt_budgets import budgets
from codecompanion.completion.similar_chunks import FileChunks, split_into_chunks
from codecompanion.completion.window import Window
from codecompanion.errors import StoreError
from codecompanion.model.code import Definition
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.store.code_index.related_files import RelatedFiles, find_related
from codecompanion.workspace.secret_text import without_secrets

_log = logging.getLogger(__name__)
_KEPT_FILES = 64
_MAX_TYPES = 4
_MAX_OWN_CHARS = 8_000
"""Maximum number of characters of the same file, both above and below the window."""
_TYPES = ("class", "interface", "type", "module")


class RecentRange(msgspec.Struct, frozen=True):
    """Lines of a file, 1-based and inclusive, where the user edited or looked."""

    path: str
    start: int
    end: int


class _Buffer(msgspec.Struct, frozen=True):
    """The text of an unsaved buffer, and the time and size of its file when it was read.

    None = the file did not exist.
    """

    text: str
    mark: tuple[int, int] | None
    chunks: FileChunks


class ProjectReader:
    """Reads one project. `reader` is its index, which may not exist. Thread-safe.

    `version` increases whenever new knowledge makes cached selections outdated.
    """

    def __init__(self, root: Path, reader: IndexReader | None, is_secret: Callable[[str], bool]) -> None:
        self.root = root
        self._real_root = Path(os.path.realpath(root))
        self._base = f"{root}/"
        self._reader, self._is_secret = reader, is_secret
        self._chunks: OrderedDict[str, tuple[tuple[int, int], FileChunks]] = OrderedDict()
        self._unsaved: dict[str, _Buffer] = {}
        self._lock = threading.Lock()
        self.version = 0

    def note_change(self) -> None:
        """Record that new knowledge has made earlier selections outdated."""
        self.version += 1

    def lay_over(self, texts: Mapping[str, str]) -> None:
        """Use unsaved buffers in place of their files, until the files are written or this method is called again."""
        most = budgets().chunks.max_file_bytes
        known, found = self._unsaved, dict[str, _Buffer]()
        for path, text in texts.items():
            before = known.get(path)
            if before is not None and before.text == text:
                found[path] = msgspec.structs.replace(before, mark=self._mark(path))
            elif not self._is_secret(path):
                shown, why = without_secrets(text, path) if len(text) <= most else (text, "")
                is_read = "\0" not in text and len(text) <= most and not why
                found[path] = _Buffer(text, self._mark(path), split_into_chunks(shown) if is_read else FileChunks())
        self._unsaved = found
        if {path: one.text for path, one in known.items()} != {path: one.text for path, one in found.items()}:
            self.note_change()

    def unsaved(self) -> dict[str, str]:
        """Return path → text for the buffers whose files have not been written since."""
        found = {path: one for path, one in self._unsaved.items() if self._mark(path) == one.mark}
        self._unsaved = found
        return {path: one.text for path, one in found.items()}

    def _mark(self, path: str) -> tuple[int, int] | None:
        try:
            stat = os.stat(f"{self._base}{path}")  # noqa: PTH116 - for each file, at every request
        except (OSError, ValueError):
            return None
        return stat.st_mtime_ns, stat.st_size

    def reads(self, index: IndexReader) -> bool:
        """Return whether this reader uses the given index."""
        return self._reader is index

    def view(
        self, path: str, window: Window, weights: Mapping[str, float], recent: Sequence[RecentRange] = ()
    ) -> ProjectView:
        """Return the knowledge for a position in the file at `path`, relative to the root.

        `weights`: the names near the position.
        """
        wanted = strongest(weights)
        related, definitions = self._from_index(path, wanted)
        ranges: dict[str, list[tuple[int, int]]] = {}
        for one in recent:
            ranges.setdefault(one.path, []).append((one.start, one.end))
        paths = [*related.paths, *ranges, *self._siblings(path, is_only_source=not related.total_files)]
        files = [
            ProjectFile(name, found, tuple(ranges.get(name, ())))
            for name in dict.fromkeys(paths)
            if name != path and (found := self._read(name)).chunks
        ]
        files += _rest_of_file(path, window)
        return ProjectView(tuple(files), tuple(definitions), related.files_with, related.total_files)

    def _from_index(self, path: str, wanted: Mapping[str, float]) -> tuple[RelatedFiles, list[tuple[str, Definition]]]:
        if self._reader is None or not wanted:
            return RelatedFiles(), []
        table = budgets()
        try:
            related = find_related(
                self._reader,
                wanted,
                path,
                limit=table.chunks.files,
                max_share=table.near.max_file_share,
                few=table.near.min_files,
                many=table.near.max_files,
            )
            most = table.signatures.max_definitions
            told = [name for name in wanted if 0 < related.defined_in.get(name, 0) <= most]
            return related, self._definitions(path, told)
        except FileNotFoundError:
            pass  # the project is not indexed yet
        except StoreError as error:
            _log.info("completion continues without the index: %s", error)
        return RelatedFiles(), []

    def _definitions(self, path: str, names: Sequence[str]) -> list[tuple[str, Definition]]:
        """Return the definitions of the names in other files, and the members of the first types found."""
        if self._reader is None or not names:
            return []
        found = [(one.path, one.definition) for one in self._reader.definitions_named(names) if one.path != path]
        types = [(where, one) for where, one in found if one.kind in _TYPES]
        order = {name: place for place, name in enumerate(names)}
        types.sort(key=lambda entry: order[entry[1].name])
        for where, one in types[:_MAX_TYPES]:
            whole = f"{one.parent}.{one.name}" if one.parent else one.name
            found += [(where, inner) for inner in self._reader.members_of(where, whole)]
        return list(dict.fromkeys(found))

    def _siblings(self, path: str, *, is_only_source: bool) -> list[str]:
        """Return files with the same extension in the same folder; more of them if they are the only source."""
        table = budgets()
        folder, _, name = path.rpartition("/")
        ending = os.path.splitext(name)[1]  # noqa: PTH122 - at every request
        if not ending:
            return []
        found = {one.rpartition("/")[2] for one in self._unsaved if one.rpartition("/")[0] == folder}
        try:
            with os.scandir(self.root / folder) as entries:
                found.update(one.name for one in entries)
        except OSError:
            pass  # the folder does not exist yet
        names = sorted(one for one in found if one.endswith(ending) and one != name)
        count = 2 * table.chunks.files if is_only_source else table.near.siblings
        return [f"{folder}/{one}" if folder else one for one in names[:count]]

    def _read(self, path: str) -> FileChunks:
        """Return the snippets of a project file, or none if the file may not be read."""
        mark, unsaved = self._mark(path), self._unsaved.get(path)
        if unsaved is not None and unsaved.mark == mark:
            return unsaved.chunks
        if mark is None:
            return FileChunks()
        try:
            with self._lock:
                known = self._chunks.get(path)
                if known is not None and known[0] == mark:
                    self._chunks.move_to_end(path)
                    return known[1]
            chunks = self._cut(path, mark[1])
        except (OSError, ValueError):
            return FileChunks()
        with self._lock:
            self._chunks[path] = (mark, chunks)
            while len(self._chunks) > _KEPT_FILES:
                self._chunks.popitem(last=False)
        return chunks

    def _cut(self, path: str, size: int) -> FileChunks:
        whole = Path(os.path.realpath(self.root / path))
        if self._is_secret(path) or not whole.is_relative_to(self._real_root) or not whole.is_file():
            return FileChunks()
        if size > budgets().chunks.max_file_bytes:
            return FileChunks()
        content = whole.read_bytes()
        if b"\0" in content:
            return FileChunks()
        text, why = without_secrets(content.decode("utf-8", "replace").replace("\r\n", "\n"), path)
        return FileChunks() if why else split_into_chunks(text)


def _rest_of_file(path: str, window: Window) -> list[ProjectFile]:
    """Return the parts of the same file outside the window."""
    above, below = window.above[-_MAX_OWN_CHARS:], window.below[:_MAX_OWN_CHARS]
    skipped = window.above.count("\n") - above.count("\n")
    shown = (window.above + window.prefix + window.suffix).count("\n")
    parts = (split_into_chunks(above, skipped + 1), split_into_chunks(below, shown + 1))
    return [ProjectFile(path, part) for part in parts if part.chunks]
