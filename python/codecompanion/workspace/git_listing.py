"""Lists the files of a repository with git: tracked files, and those neither tracked nor ignored (R-239).

Nested repositories and submodules are listed separately. If git fails, the list is empty.
"""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from codecompanion.workspace.git import read_git
from codecompanion.workspace.git_repository import find_repository, read_start

_log = logging.getLogger(__name__)

_LIST = ("--literal-pathspecs", "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard", "--")
_NAMES = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
_UNTRACKED = "?"
_TIME_LIMIT_S = 30.0
_NAMES_TIME_LIMIT_S = 10.0
_MAX_NESTED = 200
_SUBMODULE = b"160000 "
_MODE_IN_INDEX = (0o160000).to_bytes(4, "big")
"""The bytes of a submodule's mode in git's index; a chance match elsewhere in the file only costs one git call."""
_MAX_INDEX_BYTES = 100_000_000


def files_by_git(
    root: Path, check: Callable[[], None] = lambda: None, only: Sequence[str] = ()
) -> Iterator[tuple[str, bool]]:
    """Yield each path relative to the root, and whether it is tracked; paths may repeat or no longer exist. Blocks.

    `only`: the paths to list, () means the whole folder. `check` is called regularly and may raise to stop.
    """
    yield from _listed(root, "", _MAX_NESTED, check, only)


def names_below(folder: Path) -> str:
    """Return the names that git lists below a folder, each after a NUL, without names that are not text. Blocks."""
    try:
        output = read_git(folder, _NAMES, _NAMES_TIME_LIMIT_S)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        _log.info("git failed to list %s: %s", folder, error)
        return ""
    names = (name for name in output.split(b"\0") if name)
    return "".join(f"\0{text}" for name in names if (text := _as_text(name)))


def submodules_of(folder: Path) -> tuple[Path, ...]:
    """Return the submodules of a folder's repository; `git status` reads the configuration of each. Blocks."""
    try:
        repository = find_repository(folder)
        if repository is None or _MODE_IN_INDEX not in read_start(repository.git_dir / "index", _MAX_INDEX_BYTES):
            return ()
        output = read_git(repository.top, ("ls-files", "-s", "-z"), _NAMES_TIME_LIMIT_S)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        _log.info("git failed to list the submodules of %s: %s", folder, error)
        return ()
    records = (record.partition(b"\t") for record in output.split(b"\0") if record.startswith(_SUBMODULE))
    return tuple(repository.top / os.fsdecode(name) for _, _, name in records)


def _as_text(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return ""


def _listed(
    folder: Path, prefix: str, nested: int, check: Callable[[], None], only: Sequence[str] = ()
) -> Iterator[tuple[str, bool]]:
    """Yield the files that git lists below a folder; `prefix` is its path below the root, with `/`."""
    try:
        output = read_git(folder, (*_LIST, *only), _TIME_LIMIT_S)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        _log.info("git failed to list %s: %s", folder, error)
        return
    has_modules = os.path.lexists(folder / ".gitmodules")
    for record in os.fsdecode(output).split("\0"):
        tag, name = record[:1], record[2:]
        if not name:
            continue
        check()
        path = folder / name
        # For a submodule or another nested repository, git lists only the folder.
        is_nested = name.endswith("/") or ((has_modules or "." not in name) and path.is_dir())
        if not is_nested:
            yield prefix + name, tag != _UNTRACKED
        elif nested and not path.is_symlink():
            yield from _listed(path, f"{prefix}{name.rstrip('/')}/", nested // 2, check)
