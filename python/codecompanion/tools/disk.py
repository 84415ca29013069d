"""Changes on disk, whole or not at all, and file work off the event loop.

A file is written beside its place and renamed into it: a crash, a full disk or a cancel leaves the old content. The
mode is kept, and the owner where permitted; a hard link is broken, other names keep the old content.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TypeVar

from codecompanion.errors import ToolError
from codecompanion.text_files import reason

T = TypeVar("T")
Check = Callable[[], None]


class Stopped(Exception):
    """The awaiting task was cancelled; whatever the thread does is given up."""


async def in_thread(work: Callable[[Check], T]) -> T:
    """Run `work` in a thread; it calls the function it is given wherever it may stop (`write_atomic` does).

    Cancelling waits for the thread to stop or to end what can no longer be stopped, and then raises
    `asyncio.CancelledError`: nothing goes on behind the session's back.
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


def write_atomic(path: Path, content: bytes, check: Check = lambda: None) -> None:
    """Write the file, new or over an existing one; missing folders are made.

    Raises:
        ToolError: read-only, no permission, disk full, a folder of this name; what was there is unchanged.
    """
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        before = _writable_status(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_new(temporary, content, before)
        check()
        temporary.replace(path)
    except OSError as error:
        raise ToolError(f"{path} was not written: {reason(error)}. Nothing was changed.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _writable_status(path: Path) -> os.stat_result | None:
    """Return the status of the regular file to be replaced, None when there is nothing yet."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ToolError(f"{path} is {kind}. Nothing was changed.")
    # Renaming over a read-only file would succeed, and root may write anything; who made it read-only meant it.
    if not status.st_mode & 0o222:
        raise ToolError(f"{path} is read-only. Nothing was changed; ask the user to make it writable.")
    os.close(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))
    return status


def _write_new(path: Path, content: bytes, like: os.stat_result | None) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        if like is not None:
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        stream.write(content)
        stream.flush()
        os.fsync(descriptor)
