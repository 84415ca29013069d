"""Finds programs that the plugin runs (git, ripgrep, bubblewrap), but never one that a model's command could write.

A PATH often begins with project folders: `.venv/bin` of an activated environment, `node_modules/.bin`. A sandboxed
command may write there, and the plugin would run the file outside the sandbox when it starts a program by name. The
same risk applies to LD_LIBRARY_PATH and the libraries of a program; an empty entry, as in `:/opt/lib`, means the
working folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_written = set[str]()


def written_by_commands(*folders: Path) -> None:
    """Remember folders that sandboxed commands may write to; programs in them are no longer used."""
    _written.update(os.path.realpath(folder) for folder in folders)


def worked_in(folder: Path) -> None:
    """Remember a workspace, unless it is the home folder: programs below it are the user's own."""
    real, home = os.path.realpath(folder), os.path.realpath(Path.home())
    if not _is_within(home, real):
        _written.add(real)


def find_program(name: str, *untrusted: Path, search_path: str | None = None, of_root: bool = False) -> str:
    """Return the absolute path of a program on the PATH that no model's command could have put there.

    Excluded are folders below `untrusted`, below a project (a repository, a virtual environment, `node_modules`) or
    below a folder that commands may write to, and world-writable folders. `of_root`: accept only programs that only
    root can change.

    Raises: FileNotFoundError: there is none.
    """
    kept_out = _kept_out(untrusted)
    for path in _on_path(name, os.environ.get("PATH", "") if search_path is None else search_path):
        # Check the symlink and its target: either could be replaced.
        real = path.resolve()
        places = (path.parent.resolve() / path.name, real)
        if any(_is_within(str(place), folder) for place in places for folder in kept_out):
            continue
        if any(_can_be_filled(place.parent, kept_out) for place in places):
            continue
        if of_root and not all(_is_of_root(place) for place in places):
            continue
        return str(path)
    raise FileNotFoundError(2, "No such file or directory", name)


def own_search_path(search_path: str, *untrusted: Path) -> str:
    """Return the folders of a PATH or library path that only the user can write to; `untrusted`: see `find_program`."""
    kept_out = _kept_out(untrusted)
    return os.pathsep.join(
        folder
        for folder in search_path.split(os.pathsep)
        if os.path.isabs(folder) and os.path.isdir(folder)  # noqa: PTH112, PTH117 (`Path("")` is the working folder)
        and not _can_be_filled(Path(os.path.realpath(folder)), kept_out)
    )  # fmt: skip


def _kept_out(untrusted: Iterable[Path]) -> tuple[str, ...]:
    return (*map(os.path.realpath, untrusted), *sorted(_written))


def _can_be_filled(folder: Path, kept_out: Iterable[str]) -> bool:
    return any(_is_within(str(folder), one) for one in kept_out) or _is_open(folder) or _is_of_project(folder)


def _on_path(name: str, search_path: str) -> Iterator[Path]:
    for folder in search_path.split(os.pathsep):
        path = Path(folder) / name
        # Unlike `Path.is_file`, no exception for a folder that may not be entered.
        if path.is_absolute() and os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            yield path


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_of_project(folder: Path) -> bool:
    home = Path(os.path.realpath(Path.home()))
    if (folder.parent / "pyvenv.cfg").exists() or "node_modules" in folder.parts:
        return True
    # Below the home folder: a package manager's folder (/opt/homebrew) is a repository as well.
    return any((one / ".git").exists() for one in (folder, *folder.parents) if home in one.parents)


def _is_open(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return True


def _is_of_root(path: Path) -> bool:
    """Return whether only root can replace the file; a sticky folder protects each user's files."""
    try:
        found = [(one, one.stat()) for one in (path, *path.parents)]
    except OSError:
        return False
    return all(
        one.st_uid == 0 and (one.st_mode & stat.S_ISVTX or not one.st_mode & stat.S_IWOTH)
        and (place != path or not one.st_mode & (stat.S_IWOTH | stat.S_IWGRP))
        for place, one in found
    )  # fmt: skip
