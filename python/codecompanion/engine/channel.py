"""The editor's channel is the standard input and output of the host: nothing that the host starts may use it."""

from __future__ import annotations

import os
import sys


def keep_channel() -> None:
    """Keep started programs from reading the editor's channel; pynvim does the same for writing."""
    channel = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = os.fdopen(channel)
