"""Reads the files that the user named with `@` and the active file in full (R-213 … R-216)."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from codecompanion.errors import CodeCompanionError
from codecompanion.formats.text_files import decode, is_binary, reason
from codecompanion.model.gathered import NamedLines, Snippet
from codecompanion.retrieval.smart_snippets import whole_file
from codecompanion.session.gather.named_lines import named_lines
from codecompanion.session.gather.project_code import ProjectCode
from codecompanion.workspace.files import walk
from codecompanion.workspace.named_files import IS_FOLDER, NO_SUCH_FILE
from codecompanion.workspace.paths import Workspace
from codecompanion.workspace.secret_files import is_secret
from codecompanion.workspace.secret_text import without_secrets

MIN_NAME = 2
MAX_READ_BYTES = 8_000_000
"""Maximum number of bytes read of a named file in which to search for the question's subject."""
MAX_WALKED = 20_000
"""Maximum number of files searched for a bare name that git does not know."""


class ReadFiles(msgspec.Struct, frozen=True):
    """The named files as whole snippets, in the order they were named, and notes about files that were not read.

    `large`: {path: (size in bytes, lines read)} for files larger than `context.max_file_size_mb`.
    """

    snippets: tuple[Snippet, ...] = ()
    notes: tuple[str, ...] = ()
    large: Mapping[str, tuple[int, int]] = {}


def with_active(files: tuple[str, ...], active: str, *, named_first: bool) -> tuple[str, ...]:
    """Return the named files with the active file before or after them, unless it is among them (R-214)."""
    name = active.rpartition("/")[2]
    if not active or any(file == active or file.endswith(name) for file in files):
        return files
    return (*files, active) if named_first else (active, *files)


def read_mentioned(
    code: ProjectCode,
    files: tuple[str, ...],
    active: str,
    named_first: bool,
    lines: Sequence[NamedLines],
    check: Callable[[], None],
) -> ReadFiles:
    """Return the named files and the active file; unreadable files are skipped and reported (R-215). Blocks.

    If `lines` are given for a file, only these lines are returned.
    """
    snippets, notes = dict[tuple[str, int], Snippet](), list[str]()
    large = dict[str, tuple[int, int]]()
    wanted = [
        name for name in dict.fromkeys(with_active(files, active, named_first=named_first)) if len(name) >= MIN_NAME
    ]
    finder = _Finder(code, check)
    for name in wanted:
        check()
        is_active = name == active and name not in files
        try:
            path, note = finder.find(name)
            if is_active and is_secret(path):
                continue  # secret files are read only if named
            if is_secret(path) and not _names(name, path):
                raise _NotFound(f"it is a link to {path}, which is sent only if that name is mentioned.")
            snippet, size = _read(code, path, is_named=not is_active)
            if is_active and not snippet.text:
                continue
        except (CodeCompanionError, OSError) as error:
            if not is_active:
                said = f"{reason(error)}." if isinstance(error, OSError) else str(error)
                notes.append(f"@{name} was not read: {said}")
            continue
        notes += [note] if note else []
        source = "active" if is_active else "mention"
        wanted_lines = [] if is_active else [one for one in lines if one.name == name]
        parts, line_notes = named_lines(snippet, wanted_lines) if wanted_lines else ([snippet], [])
        notes += line_notes
        if size > code.choice.max_bytes and not wanted_lines:
            large[path] = size, snippet.end
        for part in parts:
            place = (path, 0 if part is snippet else part.start)
            snippets.setdefault(place, msgspec.structs.replace(part, source=source, scores=((source, 1.0),)))
    return ReadFiles(tuple(snippets.values()), tuple(notes), large)


class _NotFound(CodeCompanionError):
    """Raised when a named file does not exist or may not be read; the message says why."""


class _Finder:
    """Finds the files that the mentioned names refer to; the project is listed once for all bare names."""

    def __init__(self, code: ProjectCode, check: Callable[[], None]) -> None:
        self._code, self._check, self._workspace = code, check, Workspace(code.root)

    def find(self, name: str) -> tuple[str, str]:
        """Return the path of a named file relative to the root, and a note if other files have the same name."""
        root, workspace = self._code.root, self._workspace
        if name.startswith("@") and not (root / name).exists():
            name = name[1:]
        real = workspace.resolve(name)  # raises if the path leads out of the project
        if real.is_file() or workspace.relative(real) in self._code.unsaved:
            return workspace.relative(real), ""
        if real.is_dir():
            raise _NotFound(IS_FOLDER)
        found = () if "/" in name else self._listed.get(name) or self._walked.get(name, ())
        if not found:
            raise _NotFound(NO_SUCH_FILE.format(root=root.name or root))
        best = min(found, key=lambda path: (path.count("/"), len(path), path))
        others = len(found) - 1
        have = "1 other file has" if others == 1 else f"{others} other files have"
        return best, f"@{name} is {best}; {have} that name: write a path to choose another." if others else ""

    @cached_property
    def _listed(self) -> Mapping[str, Collection[str]]:
        return _by_name((*self._code.unsaved, *self._code.listed(self._check)))

    @cached_property
    def _walked(self) -> Mapping[str, Collection[str]]:
        """Return file name → paths for the first files of the project, including ignored files."""
        everything = itertools.islice(walk(self._code.root, include_ignored=True), MAX_WALKED)
        return _by_name(map(self._workspace.relative, everything))


def _by_name(paths: Iterable[str]) -> dict[str, Collection[str]]:
    """Return file name → paths with that name, without duplicates."""
    found = defaultdict[str, dict[str, None]](dict)
    for path in paths:
        found[path.rpartition("/")[2]][path] = None
    return dict(found)


def _names(name: str, path: str) -> bool:
    """Return whether a mention names a secret file itself, rather than a link to it (R-266)."""
    said = name.lstrip("@")
    return is_secret(said) and said.rpartition("/")[2] == path.rpartition("/")[2]


def _read(code: ProjectCode, path: str, *, is_named: bool) -> tuple[Snippet, int]:
    """Return a file as a snippet, and its size in bytes; only the beginning of a very large file is read (R-216).

    In a file that the user did not name, secrets are hidden; if they cannot be hidden, the snippet is empty.
    """
    if path in code.unsaved:
        return whole_file(path, code.unsaved[path] if is_named else code.read(path) or ""), 0
    limit = max(code.choice.max_bytes, MAX_READ_BYTES)
    handle = os.open(Path(code.root, path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        size = os.fstat(handle).st_size
        content = stream.read(limit + 1)
    if is_binary(content[:8192]):
        raise _NotFound("it is not a text file.")
    if len(content) > limit:
        content = content[:limit]
        content = content[: content.rfind(b"\n") + 1] or content
    text = decode(content).text
    if not is_named:
        text, why = without_secrets(text, path)
        return whole_file(path, "" if why else text), size
    code.keep(path, text)
    return whole_file(path, text), size
