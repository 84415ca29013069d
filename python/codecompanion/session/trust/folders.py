"""Determines the folder that a trust decision applies to, and the files it covers.

The folder of a workspace is its repository, or else the workspace itself: a decision about `~/work`, which is not a
repository, does not cover `~/work/downloaded`. A nested repository (a clone, submodule or worktree; of git or another
system) is a separate folder. A repository at the home folder (dotfiles) or above it counts only for a workspace that is
exactly that folder, so archives unpacked below home do not share its decision. All paths are real paths, so a symlink
leads to the decision about its target.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_MARKS = (".git", ".hg", ".jj", ".svn", ".bzr", ".fslckout", "_FOSSIL_", "_darcs", ".pijul")
"""Directory entries that mark the root of a repository or checkout."""
_GLOB_SIGNS = frozenset("*?[")
_AT_FDCWD, _STATX_BTIME, _STATX_SIZE = -100, 0x800, 256


def folder_of(root: Path) -> Path:
    """Return the real path of the folder whose trust decision applies to the workspace `root`."""
    real, home = Path(os.path.realpath(root)), Path(os.path.realpath(Path.home()))
    for folder in (real, *real.parents):
        if _is_repository(folder):
            return real if folder == home or folder in home.parents else folder
    return real


def covers(folder: Path, real: Path) -> bool:
    """Return whether a file (its real path) belongs to a folder: below it, and not in a nested repository."""
    if folder not in real.parents:
        return False
    between = real.parents[: real.parents.index(folder)] if real.parent != folder else ()
    return not any(_is_repository(one) for one in between)


def _is_repository(folder: Path) -> bool:
    start = str(folder).rstrip("/")  # string concatenation for speed: each tool call checks every folder up to the root
    return any(os.path.lexists(f"{start}/{mark}") for mark in _MARKS)


def identity_of(folder: Path) -> str:
    """Return the inode and creation time of a folder, which differ if another folder takes its path; "" = unknown.

    The inode alone is not enough: ext4 reuses the inode of a deleted folder.
    """
    try:
        found = folder.stat()
    except OSError:
        return ""
    born = getattr(found, "st_birthtime", None) or _birth_on_linux(folder)
    return f"{found.st_ino}-{born}"  # the device number may change after a restart


def _birth_on_linux(folder: Path) -> str:
    """Return the creation time of a folder from `statx` (man 2 statx), or "" if the system does not provide it."""
    if not sys.platform.startswith("linux"):
        return ""
    import ctypes

    found = ctypes.create_string_buffer(_STATX_SIZE)
    try:
        failed = ctypes.CDLL(None).statx(_AT_FDCWD, os.fsencode(folder), 0, _STATX_BTIME, found)
    except AttributeError:
        return ""
    mask, seconds, nanoseconds = struct.unpack_from("=I76xqI", found)
    return f"{seconds}.{nanoseconds:09}" if not failed and mask & _STATX_BTIME else ""


def is_listed(folder: Path, patterns: Iterable[str]) -> bool:
    """Return whether `trust.folders` lists a folder (given by its real path).

    A plain path matches only that folder, `*` matches one path component, and `**` any number of them: `~/mine/**`
    matches `~/mine` and everything below.
    """
    return any(_matches(folder, pattern) for pattern in patterns)


def _matches(folder: Path, pattern: str) -> bool:
    written = os.path.expanduser(pattern.rstrip("/") or "/")  # noqa: PTH111 (the `~name` of an unknown user stays as it is)
    if not Path(written).is_absolute():
        return False
    parts = Path(written).parts
    plain = next((index for index, part in enumerate(parts) if _GLOB_SIGNS & set(part)), len(parts))
    base = Path(os.path.realpath(Path(*parts[:plain])))
    if folder != base and base not in folder.parents:
        return False
    below = folder.relative_to(base).parts
    return _fits(below, parts[plain:])


def _fits(names: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not names
    if pattern[0] == "**":
        return any(_fits(names[skipped:], pattern[1:]) for skipped in range(len(names) + 1))
    return bool(names) and _fits_name(names[0], pattern[0]) and _fits(names[1:], pattern[1:])


def _fits_name(name: str, pattern: str) -> bool:
    import fnmatch

    return re.fullmatch(fnmatch.translate(pattern), name) is not None
