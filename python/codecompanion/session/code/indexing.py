"""Builds an index from files: reads and parses them, splits them into chunks and writes the chunks.

`build` updates the whole index from the disk; it continues where an earlier build was stopped. It runs in a separate
process or from the command line, never in the host. `index_file` and `index_text` process a single file.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from codecompanion.formats.text_files import decode
from codecompanion.model.code import ParsedFile
from codecompanion.retrieval.file_chunks import chunk_file
from codecompanion.store.code_index.build_lock import building
from codecompanion.store.code_index.index_writer import FROM_BUFFER, IndexedFile, IndexWriter
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.workspace.git_history import recent_commits
from codecompanion.workspace.line_lengths import is_flat, is_worth_searching
from codecompanion.workspace.project_files import (
    Choice,
    FileText,
    LeftOut,
    list_project_files,
    read_project_file,
    shareable,
    why_no_text,
)
from codecompanion.workspace.syntax.languages import language_of
from codecompanion.workspace.syntax.parse import parse

LOOK_AGAIN = 0
"""`mtime_ns` stored for a file that has just changed; the file is read again, because another change could have the
same time.
"""
_SAME_TIME_NS = 100_000_000
_BATCH_BYTES = 1_500_000
_BATCH_FILES = 200

Report = Callable[[int, int], None]
"""Called with the number of finished files and the total."""


class Built(msgspec.Struct, frozen=True):
    """The result of a build: files written, files removed, and files left out by name (with reasons).

    `is_busy`: another build was running.
    """

    written: int = 0
    removed: int = 0
    left_out: dict[str, LeftOut] = {}
    source: str = ""
    is_busy: bool = False


def index_file(root: Path, path: str, choice: Choice, now_ns: int) -> IndexedFile | None:
    """Return the indexed form of a file on disk, or None if the file is gone."""
    read = read_project_file(root, path, choice)
    if read.why_not in ("gone", "not a regular file"):
        return None
    mtime_ns = LOOK_AGAIN if abs(now_ns - read.mtime_ns) < _SAME_TIME_NS else read.mtime_ns
    return _indexed(path, read.content, mtime_ns, read.size, read.why_not)


def index_text(path: str, text: str) -> IndexedFile:
    """Return the indexed form of an unsaved buffer's text, which replaces that of its file."""
    content = text.encode("utf-8", "surrogateescape" if _is_of_bytes(text) else "replace")
    shown = shareable(FileText(content, why_not=why_no_text(content)), path)
    indexed = _indexed(path, shown.content, FROM_BUFFER, len(content), shown.why_not)
    return msgspec.structs.replace(indexed, sha256=hashlib.sha256(content).digest())


def digest_of_text(text: str) -> bytes:
    """Return the content hash that `index_text` would store."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape" if _is_of_bytes(text) else "replace")).digest()


def _is_of_bytes(text: str) -> bool:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _indexed(path: str, content: bytes, mtime_ns: int, size: int, why_not: str) -> IndexedFile:
    digest = hashlib.sha256(content).digest()
    if why_not:
        return IndexedFile(path, mtime_ns, size, digest, 0, ParsedFile(), (), why_not)
    text = decode(content).text
    language = language_of(path, content[:8192])
    parsed = ParsedFile(language) if is_flat(content) else parse(text, language)
    chunks = [chunk for chunk in chunk_file(path, text, parsed) if is_worth_searching(chunk.text)]
    return IndexedFile(path, mtime_ns, size, digest, text.count("\n") + 1, parsed, chunks)


class Difference(msgspec.Struct, frozen=True):
    """The differences between an index and the disk: files to read and files to remove."""

    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def compare(root: Path, listed: Iterable[str], known: Mapping[str, tuple[int, int]]) -> Difference:
    """Return how the files on disk differ from the known `(mtime_ns, size)`, using only `stat`. Blocks."""
    changed, there, base = [], set(), f"{root}/"
    for path in listed:
        try:
            found = os.lstat(base + path)
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(found.st_mode):
            continue  # links and pipes are not read
        there.add(path)
        if known.get(path) != (found.st_mtime_ns, found.st_size):
            changed.append(path)
    return Difference(tuple(changed), tuple(path for path in known if path not in there))


def write_changes(
    writer: IndexWriter, root: Path, difference: Difference, choice: Choice, now_ns: Callable[[], int], report: Report
) -> int:
    """Write the differences in batches, each durable on its own; return the number of files written."""
    writer.remove(difference.gone)
    done = 0
    for batch in _batches(root, difference.changed, choice, now_ns):
        writer.remove(path for path, one in batch if one is None)
        writer.put((one for _, one in batch if one is not None), now_ns() // 1_000_000_000)
        done += len(batch)
        report(done, len(difference.changed))
    return done


def build(
    root: Path,
    path: Path,
    choice: Choice,
    *,
    now_ns: Callable[[], int],
    report: Report = lambda done, total: None,
    is_rebuild: bool = False,
) -> Built:
    """Update the index at `path` from the folder `root`. Blocks, possibly for several seconds.

    Raises:
        StoreUnavailable: the index cannot be written; the message says why.
    """
    with building(path) as is_ours:
        if not is_ours:
            return Built(is_busy=True)
        writer = IndexWriter(path, root)
        try:
            if is_rebuild or writer.should_be_rebuilt():
                writer.clear()
            listed = list_project_files(root, choice)
            with closing(IndexReader(path)) as reader:
                known, was_complete = reader.stats(), reader.meta("complete") == "1"
            difference = compare(root, listed.paths, known)
            ordered = msgspec.structs.replace(difference, changed=_latest_first(root, difference.changed))
            written = write_changes(writer, root, ordered, choice, now_ns, report)
            if written > _BATCH_FILES or not was_complete:
                writer.finish(is_first=not was_complete)
            writer.set_meta("listed", str(now_ns() // 1_000_000_000))
            writer.set_meta("complete", "1")
            return Built(written, len(difference.gone), listed.left_out_by_name, listed.source)
        finally:
            writer.close()


def _latest_first(root: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths, most recently committed first, so that a partial index has the most useful files."""
    if len(paths) <= _BATCH_FILES:
        return tuple(paths)
    rank: dict[str, int] = {}
    for commit in recent_commits(root):
        for path in commit.paths:
            rank.setdefault(path, len(rank))
    return tuple(sorted(paths, key=lambda path: rank.get(path, len(rank))))


def _batches(
    root: Path, paths: Iterable[str], choice: Choice, now_ns: Callable[[], int]
) -> Iterator[list[tuple[str, IndexedFile | None]]]:
    batch: list[tuple[str, IndexedFile | None]] = []
    size = 0
    for path in paths:
        one = index_file(root, path, choice, now_ns())
        batch.append((path, one))
        size += 0 if one is None or one.why_not else one.size
        if size > _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
