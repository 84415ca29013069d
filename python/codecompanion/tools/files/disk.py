"""Changes files on disk atomically, and runs file work off the event loop.

A file is written next to its target and renamed over it: a crash, a full disk or a cancellation leaves the old content.
The mode is kept, and the owner where permitted; hard links are broken, so the file's other names keep the old content.

Paths arrive resolved and checked (`workspace.paths`). No symbolic link in a path is followed: a folder that was
replaced by a link since that check may lead outside the workspace.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import TypeVar

from codecompanion.errors import ToolError
from codecompanion.formats.text_files import reason

T = TypeVar("T")
Check = Callable[[], None]


class Stopped(Exception):
    """Raised in a thread to abandon its work after the awaiting task was cancelled."""


async def in_thread(work: Callable[[Check], T]) -> T:
    """Run `work` in a thread; it must call its argument wherever it can be stopped (as `write_atomic` does).

    Cancellation waits until the thread stops or finishes a step that cannot be interrupted, and then raises
    `asyncio.CancelledError`, so that no work continues in the background.
    """
    stop = Event()

    def check() -> None:
        if stop.is_set():
            raise Stopped

    task = asyncio.ensure_future(asyncio.to_thread(work, check))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        with contextlib.suppress(Exception):
            await task
        raise


# O_PATH opens a folder that can be entered but not listed.
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


@contextlib.contextmanager
def opened_folder(path: Path, *, make: bool = False, private: bool = False) -> Iterator[int]:
    """Yield a descriptor of the folder: operations relative to it stay in that folder even if the path changes.

    `make`: create missing folders; `private`: only their owner may access them.

    Raises:
        ToolError: a part of the path is a symbolic link.
        OSError: the folder does not exist, or permission was denied.
    """
    descriptor = os.open(path.anchor, _FOLDER)
    try:
        for depth, name in enumerate(path.parts[1:], 2):
            below = _step(descriptor, name, Path(*path.parts[:depth]), (0o700 if private else 0o777) if make else None)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _step(above: int, name: str, path: Path, mode: int | None) -> int:
    try:
        if mode is not None:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=above)
        return os.open(name, _FOLDER, dir_fd=above)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_link(above, name):
            raise ToolError(f"{path} has become a symbolic link. Nothing was changed.") from error
        raise


def _is_link(folder: int, name: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False


def write_atomic(path: Path, content: bytes, check: Check = lambda: None, *, private: bool = False) -> None:
    """Write a new or existing file, creating missing folders. `private`: only the owner may read it.

    Raises:
        ToolError: the file is read-only, permission is denied, the disk is full, a folder has this name, or a link is
            in the path; existing content is unchanged.
    """
    temporary = f".{path.name[:100]}.{secrets.token_hex(4)}.tmp"
    try:
        with opened_folder(path.parent, make=True, private=private) as folder:
            before = _writable_status(path, folder)
            try:
                _write_new(temporary, content, before, folder, private)
                check()
                os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"{path} was not written: {reason(error)}. Nothing was changed.") from error


def remove_drafts(folder: Path) -> None:
    """Delete temporary files that killed processes left in a folder; the caller must hold a lock on writing there."""
    for draft in folder.glob(f".*.{'[0-9a-f]' * 8}.tmp"):
        with contextlib.suppress(OSError):
            draft.unlink()


def remove_file(path: Path) -> None:
    """Delete a file; if the path is a link, delete only the link.

    Raises:
        ToolError: a parent folder has become a symbolic link.
        OSError: the file cannot be deleted.
    """
    with opened_folder(path.parent) as folder:
        os.unlink(path.name, dir_fd=folder)


def make_link(path: Path, target: str) -> None:
    """Create a symbolic link; an existing file is left alone.

    Raises:
        ToolError: a parent folder has become a symbolic link.
        OSError: the link cannot be created.
    """
    with opened_folder(path.parent) as folder:
        os.symlink(target, path.name, dir_fd=folder)


def set_mode(path: Path, mode: int) -> None:
    """Set the permissions of a regular file, without following a link.

    Raises:
        ToolError: a parent folder has become a symbolic link.
        OSError: the file does not exist, or is a link.
    """
    with opened_folder(path.parent) as folder:
        descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)


def _writable_status(path: Path, folder: int) -> os.stat_result | None:
    """Return the status of the regular file to be replaced, or None if it does not exist."""
    try:
        status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ToolError(f"{path} is {kind}. Nothing was changed.")
    # Renaming over a read-only file would succeed, and root can write anything, but it is read-only on purpose.
    if not status.st_mode & 0o222:
        raise ToolError(f"{path} is read-only. Nothing was changed; ask the user to make it writable.")
    os.close(os.open(path.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder))
    return status


def _write_new(name: str, content: bytes, like: os.stat_result | None, folder: int, private: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600 if private else 0o666, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as stream:
        if like is not None and not private:
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        stream.write(content)
        stream.flush()
        os.fsync(descriptor)
