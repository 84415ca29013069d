"""A lock file shared between processes. The lock is released when its holder exits for any reason."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_log = logging.getLogger(__name__)
_ASK_AGAIN_S = 0.05
_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


@asynccontextmanager
async def locked(file: Path, limit_s: float) -> AsyncIterator[None]:
    """Hold the lock while the block runs, without it if the file system has no locks; the file is not deleted.

    Raises:
        TimeoutError: another process held the lock for `limit_s` seconds.
        OSError: the file cannot be created.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        async with asyncio.timeout(limit_s):
            while not _try_to_lock(descriptor, file):  # noqa: ASYNC110 (the holder is another process)
                await asyncio.sleep(_ASK_AGAIN_S)
        yield
    finally:
        os.close(descriptor)


def _try_to_lock(descriptor: int, file: Path) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        _log.warning("%s cannot be locked: %s", file, error.strerror)
    return True
