"""`python -m codecompanion.engine.vector_worker`: makes a host's vectors (`session.vectors.vector_process`).

It reads its job from the first line of standard input, and ends when that closes because the host has exited.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from codecompanion.engine.index_worker import NICENESS, exit_with_host, say
from codecompanion.errors import CodeCompanionError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.session.code.index_process import Progress
from codecompanion.session.vectors.vector_process import VectorJob, carry_out


def main() -> int:
    """Run one job; return the exit status."""
    try:
        job = typed.read_json(sys.stdin.buffer.readline(), type=VectorJob)
    except NOT_READABLE:
        say(Progress(is_finished=True, why="The vector worker got no job."))
        return 2
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICENESS)
    threading.Thread(target=exit_with_host, daemon=True).start()
    try:
        made = carry_out(job, lambda done, total: say(Progress(done, total)))
    except FileNotFoundError:
        say(Progress(is_finished=True, why="There is no index yet."))
        return 1
    except (CodeCompanionError, OSError) as error:
        say(Progress(is_finished=True, why=str(error)))
        return 1
    say(Progress(made.vectors, made.vectors + made.missing, is_finished=True, why=" ".join(made.notes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
