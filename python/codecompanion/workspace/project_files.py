"""The files that are a project's own text (R-216, R-239, R-266): what the index and the search of its files look at.

Git says which files there are, tracked and untracked, without those it ignores; where it cannot, the walk does. A
repository inside the repository, a submodule too, is asked by itself. Symbolic links are not followed. Hidden, secret,
vendored, generated, binary and too large files are left out, and counted by why.
"""

from __future__ import annotations

import logging
import os
import stat
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from codecompanion.formats.text_files import is_binary
from codecompanion.workspace.files import walk
from codecompanion.workspace.git import read_git
from codecompanion.workspace.left_out import (
    is_data,
    is_hidden,
    marks_of_generated_files,
    max_data_bytes,
    why_left_out,
)

_log = logging.getLogger(__name__)

MAX_BYTES = 1_000_000
"""`context.max_file_size_mb` unless the user says otherwise (R-216)."""
_LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
_TIME_LIMIT_S = 30.0
_MAX_NESTED = 200
_HEAD_BYTES = 8_192
_MARK_BYTES = 1_024
_LONG_LINE = 5_000
_LONG_ON_AVERAGE = 300


class Choice(msgspec.Struct, frozen=True):
    """What the user lets in: hidden files, files up to so many bytes."""

    include_hidden: bool = False
    max_bytes: int = MAX_BYTES


class ListedFiles(msgspec.Struct, frozen=True):
    """The files of a project by their names: `left_out` counts by why; `source` is "git" or "walk".

    `folders` are those in which a new file would belong: their times say whether the list is still right.
    """

    paths: tuple[str, ...]
    folders: tuple[str, ...]
    left_out: dict[str, int]
    source: str


class FileText(msgspec.Struct, frozen=True):
    """What stands in a file; `why_not` "" or the reason why it is left out: binary, generated, too large."""

    content: bytes = b""
    mtime_ns: int = 0
    size: int = 0
    why_not: str = ""


def list_project_files(root: Path, choice: Choice, check: Callable[[], None] = lambda: None) -> ListedFiles:
    """Return the project's own files, sorted, by their names alone. Blocks.

    `check` is called now and then, and may raise to stop.
    """
    found = list(_by_git(root, "", _MAX_NESTED, check))
    source = "git" if found else "walk"
    if not found:
        base = f"{root}/"
        found = [str(path).removeprefix(base) for path in _checked(walk(root), check)]
    paths, left_out = [], Counter[str]()
    for path in found:
        why = _why_not_by_name(path, choice, is_tracked=source == "git")
        if why:
            left_out[why] += 1
        else:
            paths.append(path)
    folders = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return ListedFiles(tuple(sorted(set(paths))), tuple(sorted(folders)), dict(left_out), source)


def belongs(path: str, choice: Choice) -> bool:
    """Return whether a file of the project may be gathered, by its name."""
    return not _why_not_by_name(path, choice, is_tracked=True)


def read_project_file(root: Path, path: str, choice: Choice) -> FileText:
    """Return the bytes of a file and what the disk said of it right before; never raises for what stands there."""
    try:
        handle = os.open(root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        return FileText(why_not="gone" if isinstance(error, FileNotFoundError) else "unreadable")
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return FileText(why_not="no regular file")
        mtime_ns, size = found.st_mtime_ns, found.st_size
        limit = min(choice.max_bytes, max_data_bytes()) if is_data(path) else choice.max_bytes
        if size > limit:
            return FileText(b"", mtime_ns, size, "too large")
        with os.fdopen(os.dup(handle), "rb") as stream:
            content = stream.read(limit + 1)
    except OSError:
        return FileText(why_not="unreadable")
    finally:
        os.close(handle)
    return FileText(content, mtime_ns, size, why_no_text(content))


def why_no_text(content: bytes) -> str:
    """Return why the content is not a person's text: "binary", "generated" or "" = it is."""
    head = content[:_HEAD_BYTES]
    if is_binary(head):
        return "binary"
    if any(mark in head[:_MARK_BYTES] for mark in marks_of_generated_files()):
        return "generated"
    lines = content.count(b"\n") + 1
    if len(content) > _LONG_LINE and len(content) / lines > _LONG_ON_AVERAGE:
        longest = max(map(len, content.split(b"\n")))
        if longest > _LONG_LINE:
            return "generated"
    return ""


def _why_not_by_name(path: str, choice: Choice, *, is_tracked: bool) -> str:
    if not path.isprintable() and not _is_text(path):
        return "name"
    why = why_left_out(path, is_tracked=is_tracked)
    if why:
        return why
    return "hidden" if not choice.include_hidden and is_hidden(path) else ""


def _is_text(path: str) -> bool:
    """Return whether the name can be stored and shown: bytes that are no UTF-8 cannot."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _by_git(folder: Path, prefix: str, nested: int, check: Callable[[], None]) -> Iterator[str]:
    """Yield what git lists, relative to the root (`prefix` is the folder's path below it, with `/`)."""
    try:
        output = read_git(folder, _LIST, _TIME_LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        _log.info("git could not list %s: %s", folder, error)
        return
    has_modules = os.path.lexists(folder / ".gitmodules")
    for name in os.fsdecode(output).split("\0"):
        if not name:
            continue
        check()
        path = folder / name
        # A submodule, or another repository that stands here: git names its folder alone.
        is_nested = name.endswith("/") or ((has_modules or "." not in name) and path.is_dir())
        if not is_nested:
            yield prefix + name
        elif nested and not path.is_symlink():
            inner = name.rstrip("/")
            yield from _by_git(path, f"{prefix}{inner}/", nested // 2, check)


def _checked(paths: Iterator[Path], check: Callable[[], None]) -> Iterator[Path]:
    for path in paths:
        check()
        yield path
