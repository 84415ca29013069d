"""Lists the files with a project's own text (R-216, R-239, R-266), for the index and file searches.

Git lists tracked and untracked files, but not ignored ones; if git fails, a walk of the folders lists them. Symbolic
links are not followed. Hidden, secret, vendored, generated, binary and overly large files are left out, and counted by
reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from codecompanion.formats.text_files import decode, encode, is_binary
from codecompanion.workspace.excluded_files import (
    build_folders_of,
    is_data,
    is_hidden,
    marks_of_generated_files,
    max_data_bytes,
    vendored_folder,
    why_left_out,
)
from codecompanion.workspace.files import walk
from codecompanion.workspace.git_listing import files_by_git
from codecompanion.workspace.line_lengths import is_made_of_long_lines
from codecompanion.workspace.secret_text import without_secrets

MAX_BYTES = 1_000_000
"""The default of `context.max_file_size_mb` (R-216)."""
MAX_NAMES = 3
WITHHELD = "secret"
_OF_A_REPOSITORY = ("HEAD", "objects", "refs")
_GIT_KEEPS = frozenset(
    "HEAD FETCH_HEAD ORIG_HEAD config description hooks index info objects refs packed-refs logs worktrees branches"
    " modules shallow".split()
)
_HEAD_BYTES = 8_192
_MARK_BYTES = 1_024


class Choice(msgspec.Struct, frozen=True):
    """The user's choice of files: whether hidden files are included, and the maximum size (`max_bytes`)."""

    include_hidden: bool = False
    max_bytes: int = MAX_BYTES


class LeftOut(msgspec.Struct):
    """The number of files left out for one reason, and the first few names (or the names of their folders)."""

    count: int = 0
    names: list[str] = []

    def add(self, name: str) -> None:
        """Count a file, and keep its name if few are kept so far."""
        self.count += 1
        if len(self.names) < MAX_NAMES and name not in self.names:
            self.names.append(name)


class ListedFiles(msgspec.Struct, frozen=True):
    """The names of a project's files, and the files left out, by reason; `source` is "git" or "walk".

    `folders` are the folders in which a new file would belong; their timestamps show whether the list is still correct.
    """

    paths: tuple[str, ...]
    folders: tuple[str, ...]
    left_out_by_name: dict[str, LeftOut]
    source: str

    @property
    def left_out(self) -> dict[str, int]:
        """Return the number of files left out, by reason."""
        return {why: found.count for why, found in self.left_out_by_name.items()}


class FileText(msgspec.Struct, frozen=True):
    """The text of a file, without secrets. `why_not`: why it is left out (binary, generated, too large), or "".

    If the file is withheld, "secret: …" names the secret in it.
    """

    content: bytes = b""
    mtime_ns: int = 0
    size: int = 0
    why_not: str = ""


def list_project_files(root: Path, choice: Choice, check: Callable[[], None] = lambda: None) -> ListedFiles:
    """Return the project's own files, sorted, judging only by name. Blocks.

    `check` is called regularly, and may raise to stop.
    """
    found = dict(files_by_git(root, check))
    source = "git" if found else "walk"
    if not found:
        base = f"{root}/"
        found = {str(path).removeprefix(base): False for path in _checked(walk(root), check)}
        if all((root / name).exists() for name in _OF_A_REPOSITORY):  # a bare one: its address may have a key in it
            found = {path: False for path in found if path.partition("/")[0] not in _GIT_KEEPS}
    paths, left_out = _own(found, choice)
    folders = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return ListedFiles(tuple(sorted(paths)), tuple(sorted(folders)), left_out, source)


def _own(found: Mapping[str, bool], choice: Choice) -> tuple[list[str], dict[str, LeftOut]]:
    """Split the files (path → is tracked) into the project's own, and the others by reason."""
    # Build output is not tracked; a `bin` folder with tracked files is the project's own, including new files.
    own_folders = {folder for path, is_tracked in found.items() if is_tracked for folder in build_folders_of(path)}
    paths, left_out = list[str](), dict[str, LeftOut]()
    for path, is_tracked in found.items():
        is_own = is_tracked or not own_folders.isdisjoint(build_folders_of(path))
        why = _why_not_by_name(path, choice, is_tracked=is_own)
        if why:
            name = vendored_folder(path, is_tracked=is_own) if why == "vendored" else path
            left_out.setdefault(why, LeftOut()).add(name)
        else:
            paths.append(path)
    return paths, left_out


def belongs(path: str, choice: Choice) -> bool:
    """Return whether a file may be gathered, judging by its name."""
    return not _why_not_by_name(path, choice, is_tracked=True)


def listed_among(root: Path, paths: Sequence[str], choice: Choice) -> set[str]:
    """Return those of a few paths that `list_project_files` would list; without git, judging by name."""
    given = [path for path in paths if belongs(path, choice)]
    if not given or not any(os.path.lexists(folder / ".git") for folder in (root, *root.parents)):
        return set(given)
    return set(given).intersection(_own(dict(files_by_git(root, only=given)), choice)[0])


def read_project_file(root: Path, path: str, choice: Choice) -> FileText:
    """Return a file's bytes, and its status just before it was read; never raises because of the content."""
    try:
        handle = os.open(root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        return FileText(why_not="gone") if isinstance(error, FileNotFoundError) else _unreadable(root / path)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return FileText(why_not="not a regular file")
        mtime_ns, size = found.st_mtime_ns, found.st_size
        limit = min(choice.max_bytes, max_data_bytes()) if is_data(path) else choice.max_bytes
        if size > limit:
            return FileText(b"", mtime_ns, size, "too large")
        with os.fdopen(os.dup(handle), "rb") as stream:
            content = stream.read(limit + 1)
    except OSError:
        return _unreadable(root / path)
    finally:
        os.close(handle)
    return shareable(FileText(content, mtime_ns, size, why_no_text(content)), path)


def shareable(file: FileText, path: str) -> FileText:
    """Return a file as it may be searched and sent without asking: without its secrets, or withheld."""
    if file.why_not:
        return file
    before = decode(file.content)
    text, why = without_secrets(before.text, path)
    if why:
        return msgspec.structs.replace(file, content=b"", why_not=f"{WITHHELD}: {why}")
    if text is before.text:
        return file
    return msgspec.structs.replace(file, content=encode(msgspec.structs.replace(before, text=text)))


def _unreadable(path: Path) -> FileText:
    """Return a result for an unreadable file, which is not tried again until its status on disk changes."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return FileText(why_not="gone")
    is_file = stat.S_ISREG(found.st_mode)
    return FileText(b"", found.st_mtime_ns, found.st_size, "unreadable" if is_file else "not a regular file")


def why_no_text(content: bytes) -> str:
    """Return why the content is not text written by a person: "binary", "generated", or "" if it is."""
    head = content[:_HEAD_BYTES]
    if is_binary(head):
        return "binary"
    if any(mark in head[:_MARK_BYTES] for mark in marks_of_generated_files()):
        return "generated"
    return "generated" if is_made_of_long_lines(content) else ""


def _why_not_by_name(path: str, choice: Choice, *, is_tracked: bool) -> str:
    if not path.isprintable() and not _is_text(path):
        return "name"
    why = why_left_out(path, is_tracked=is_tracked)
    if why:
        return why
    return "hidden" if not choice.include_hidden and is_hidden(path) else ""


def _is_text(path: str) -> bool:
    """Return whether the name can be stored and shown: bytes that are not UTF-8 cannot."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _checked(paths: Iterator[Path], check: Callable[[], None]) -> Iterator[Path]:
    for path in paths:
        check()
        yield path
