"""Protects the editor's channel, the host's standard input and output, from the programs that the host starts."""

from __future__ import annotations

import os
import sys


def keep_channel() -> None:
    """Prevent child processes from reading the editor's channel; pynvim already prevents them from writing to it."""
    channel = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = os.fdopen(channel)
