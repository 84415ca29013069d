"""Finds the names in a message that are files of the project (R-213, R-215), without reading the files. Blocks."""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from codecompanion.workspace.files import walk
from codecompanion.workspace.git import read_git

NO_SUCH_FILE = "no such file in {root}."
IS_FOLDER = "it is a folder: name its files, or write #{codebase}."
"""The reason shown if a name after `@` is a folder."""
_log = logging.getLogger(__name__)
TIME_LIMIT_S = 2.0
MAX_WALKED = 20_000
"""Maximum number of files checked for a name without git; users can write the path of any other file."""


def files_named(root: Path, names: Sequence[str], open_files: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names that are files: a path as written, or a bare name anywhere below the root.

    A bare name without a dot may be a decorator or a person, so it counts only if it is a file in the root itself, or
    open.
    """
    found = [name for name in names if _is_file(root, name) or _is_open(name, open_files)]
    sought = [name for name in names if name not in found and "/" not in name and "." in name.strip(".")]
    if sought:
        there = _names_below(root, sought)
        found += [name for name in sought if name in there]
    return tuple(name for name in names if name in found)


def folders_named(root: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that are folders."""
    return tuple(name for name in names if any(map(str.isalnum, name)) and _is_folder(root, name))


def _is_folder(root: Path, name: str) -> bool:
    try:
        return (root / Path(name).expanduser()).is_dir()
    except (OSError, ValueError, RuntimeError):
        return False


def _is_file(root: Path, name: str) -> bool:
    try:
        return (root / Path(name).expanduser()).is_file()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, unknown home
        return False


def _is_open(name: str, open_files: Sequence[str]) -> bool:
    return "/" not in name and any(Path(path).name == name for path in open_files)


def _names_below(root: Path, names: Sequence[str]) -> set[str]:
    """Return the bare names that belong to a file below the root."""
    listed = _listed_by_git(root, names)
    if listed is None:
        listed = (path.name for path in itertools.islice(walk(root), MAX_WALKED))
    return set(names).intersection(listed)


def _listed_by_git(root: Path, names: Sequence[str]) -> Iterator[str] | None:
    """Return the file names that git lists for these names, or None if git fails."""
    command = ("--glob-pathspecs", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--")
    try:
        output = read_git(root, (*command, *(f"**/{_escaped(name)}" for name in names)), TIME_LIMIT_S)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        _log.info("git could not be asked for a file: %s", error)
        return None
    return (path.rpartition("/")[2] for path in os.fsdecode(output).split("\0"))


def _escaped(name: str) -> str:
    """Return a name with git's pattern characters escaped."""
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in name)
