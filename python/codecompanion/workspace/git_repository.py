"""Finds the repository of a folder without git: its top folder, git directory and common directory.

Only a folder with a `.git` entry is a repository; one that looks like a bare repository (`HEAD`, `objects`, `refs`) is
not, as with git's `safe.bareRepository=explicit`. Files are read only up to a size limit, and pipes and devices never.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import msgspec

from codecompanion.formats.regex import regex

_MAX_POINTER_BYTES = 4_096
_GITDIR = regex(rb"gitdir: ([^\n\r\0]+)")


class Repository(msgspec.Struct, frozen=True):
    """A repository: `top` is the folder with `.git`; `git_dir` has HEAD and the index, `common_dir` objects and refs.

    `git_dir` and `common_dir` differ in a linked worktree. All are real paths.
    """

    top: Path
    git_dir: Path
    common_dir: Path


def find_repository(folder: Path) -> Repository | None:
    """Return the repository that contains a folder, or None if there is none. Blocks.

    Raises: OSError: a file of the repository cannot be read.
    """
    real = Path(os.path.realpath(folder))
    for top in (real, *real.parents):
        entry = top / ".git"
        if not os.path.lexists(entry):
            continue
        if not entry.is_dir():  # a linked worktree or a submodule
            named = _GITDIR.match(read_start(entry, _MAX_POINTER_BYTES))
            if named is None:
                return None
            entry = top / os.fsdecode(named[1].strip())
        return repository_at(top, entry)
    return None


def repository_at(top: Path, git_dir: Path) -> Repository:
    """Return the repository with this git directory; `top` is its working tree.

    Raises:
        OSError: a file of the repository cannot be read.
    """
    git_dir, common = Path(os.path.realpath(git_dir)), Path()
    with contextlib.suppress(FileNotFoundError):
        common = Path(os.fsdecode(read_start(git_dir / "commondir", _MAX_POINTER_BYTES).strip(b"\r\n")))
    return Repository(top, git_dir, Path(os.path.realpath(git_dir / common)))


def read_start(path: Path, limit_bytes: int) -> bytes:
    """Return the start of a regular file, without blocking on a pipe.

    Raises: OSError: the file is missing, or is not a regular file.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # the path contains a NUL
        raise OSError(str(error)) from error
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is not a regular file")
        return stream.read(limit_bytes)
