"""Keep the memory and the environment of this process from other programs of the same user.

A command of a model runs as the user, so it could read the keys in `/proc/<host>/environ` or `/proc/<host>/mem`. Linux
closes both for a process that is not dumpable; it leaves no core dump either. Other systems offer nothing like it.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

_PR_SET_DUMPABLE = 4


def close_own_memory() -> bool:
    """Make this process not dumpable; return whether the system did it."""
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(OSError, AttributeError, ValueError):
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    return False
