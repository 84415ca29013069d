"""Runs a program and collects its output, with limits on time and size; the program's child processes end with it."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

_CHECK_EVERY_S = 0.05
_MAX_ERROR_BYTES = 16_384
_PIECE = 1 << 16


class Ended(msgspec.Struct, frozen=True):
    """A program's output and exit status; `stopped` names the limit that ended it, leaving the output partial."""

    output: bytes
    errors: bytes
    status: int
    stopped: Literal["", "time", "size"] = ""


def run_bounded(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    time_limit_s: float,
    max_bytes: int,
    check: Callable[[], None] = lambda: None,
) -> Ended:
    """Run a program without input until it ends or reaches a limit. Blocks; `check` may raise to stop.

    Raises: OSError: the program cannot be started.
    """
    deadline = time.monotonic() + time_limit_s
    output, errors, stopped = bytearray(), bytearray(), ""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process, selectors.DefaultSelector() as selector:
        assert process.stdout is not None  # noqa: S101 - requested above
        assert process.stderr is not None  # noqa: S101
        selector.register(process.stdout, selectors.EVENT_READ, output)
        selector.register(process.stderr, selectors.EVENT_READ, errors)
        try:
            while selector.get_map() and not stopped:
                check()
                for key, _ in selector.select(_CHECK_EVERY_S):
                    piece = os.read(key.fd, _PIECE)
                    if not piece:
                        selector.unregister(key.fileobj)
                    elif key.data is output or len(errors) < _MAX_ERROR_BYTES:
                        key.data.extend(piece)
                stopped = "size" if len(output) > max_bytes else "time" if time.monotonic() > deadline else ""
            if not stopped:
                process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            stopped = "time"
        finally:
            _end(process)
    return Ended(bytes(output[:max_bytes]), bytes(errors), process.returncode, stopped)  # type: ignore[arg-type]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and its children, unless the program has already ended."""
    if process.poll() is None:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
