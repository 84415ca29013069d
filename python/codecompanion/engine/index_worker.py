"""`python -m codecompanion.engine.index_worker`: builds a project's index for a host (`session.code.index_process`).

It reads its job from the first line of standard input, and ends when that closes because the host has exited.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path

import msgspec

from codecompanion.errors import CodeCompanionError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.session.code.index_process import IndexJob, Progress
from codecompanion.session.code.indexing import build

NICENESS = 15


def main() -> int:
    """Run one job; return the exit status."""
    line = sys.stdin.buffer.readline()
    try:
        job = typed.read_json(line, type=IndexJob)
    except NOT_READABLE as error:
        say(Progress(is_finished=True, why=f"The index worker got no job: {error}."))
        return 2
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICENESS)
    threading.Thread(target=exit_with_host, daemon=True).start()
    try:
        built = build(
            Path(os.fsdecode(job.root)),
            Path(os.fsdecode(job.path)),
            job.choice,
            now_ns=time.time_ns,
            report=lambda done, total: say(Progress(done, total)),
            is_rebuild=job.is_rebuild,
        )
    except (CodeCompanionError, OSError) as error:
        say(Progress(is_finished=True, why=f"The code is not indexed: {error}"))
        return 1
    why = "Another Neovim is building this index." if built.is_busy else ""
    say(Progress(built.written, built.written, is_finished=True, why=why))
    return 0


def say(progress: Progress) -> None:
    """Write one line for the host."""
    try:
        sys.stdout.buffer.write(msgspec.json.encode(progress) + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        os._exit(1)  # the output has no reader any more


def exit_with_host() -> None:
    """Wait until standard input closes, then end the process."""
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
