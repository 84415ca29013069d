"""Protects the memory and environment of this process from other programs of the same user.

A model's command runs as the user, so it could read the keys in `/proc/<host>/environ` or `/proc/<host>/mem`. Linux
denies both for a process that is not dumpable, which does not write core dumps either. Other systems have no
equivalent. `lua/codecompanion/host/own_memory.lua` does the same for Neovim. Root can still read them, so a host that
runs as root gives up that right, for itself and for all programs it starts (man 7 capabilities).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_LOOKING = (19, 21, 38)
"""Capabilities that allow reading other processes: CAP_SYS_PTRACE, CAP_SYS_ADMIN, and CAP_PERFMON since Linux 6.13."""
_CAPABILITY_VERSION = 0x20080522
_ENVIRONMENT_FIELDS = slice(47, 49)
"""`env_start` and `env_end` in `/proc/self/stat`, counted after the program name (may contain spaces; see man 5 proc).
"""


def close_own_memory() -> bool:
    """Make this process not dumpable; return whether that succeeded."""
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(OSError, AttributeError, ValueError):
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    return False


def give_up_tracing() -> bool:
    """Give up root's right to read other processes; return whether that succeeded.

    It applies to the calling thread and the programs it starts, so call it before there are other threads.
    """
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return False
    with contextlib.suppress(OSError, AttributeError, ValueError):
        libc = ctypes.CDLL(None, use_errno=True)
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
        sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: the low halves, then the high ones
        if libc.capget(header, sets) != 0:
            return False
        for number in _LOOKING:
            for one in range(3):
                sets[one + 3 * (number // 32)] &= ~(1 << number % 32) & 0xFFFFFFFF
            libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
        return bool(libc.capset(header, sets) == 0)
    return False


def wipe_start_environment(names: Iterable[str]) -> bool:
    """Overwrite the values of variables in this process's start environment, which `/proc/<pid>/environ` shows.

    Remove them from `os.environ` first, because nothing may point to that memory. Return whether the system has such
    memory.
    """
    wanted = {name.encode("utf-8", "surrogateescape") for name in names}
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        start, end = map(int, fields[_ENVIRONMENT_FIELDS])
        place = start
        for entry in ctypes.string_at(start, end - start).split(b"\0") if 0 < start < end else ():
            name, _, value = entry.partition(b"=")
            if name in wanted:
                ctypes.memset(place + len(name) + 1, 0, len(value))
            place += len(entry) + 1
        return 0 < start < end
    return False
