"""Runs the worker process that builds an index: at low priority, killable, and ended together with the host.

The host writes one line (the job) to the worker's standard input and keeps it open; when it closes, the host is gone
and the worker ends at once. The worker answers with one line of JSON per batch. Each written batch is durable, so the
next worker continues where this one stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable
from typing import Literal

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.workspace.project_files import Choice

_log = logging.getLogger(__name__)

END_S = 2.0
_LINE_LIMIT = 1_000_000
"""Maximum bytes of a line from a worker, enough for the vector of a model with many dimensions."""


class IndexJob(msgspec.Struct, frozen=True):
    """The worker's job: update the index at `path` from the folder `root`; both paths as bytes."""

    root: bytes
    path: bytes
    choice: Choice
    is_rebuild: bool = False


class Progress(msgspec.Struct, frozen=True):
    """A line from the worker. If `is_finished` is true and `why` is "", the index is complete."""

    done: int = 0
    total: int = 0
    is_finished: bool = False
    why: str = ""


OnProgress = Callable[[Literal["building", "ready", "unusable"], int, int, str], None]


class WorkerProcess:
    """Runs at most one worker at a time. `module` is the program that it runs; the job is a line of JSON."""

    def __init__(self, on_progress: OnProgress, module: str = "codecompanion.engine.index_worker") -> None:
        self._on_progress, self._module = on_progress, module
        self._process: asyncio.subprocess.Process | None = None
        self._following: asyncio.Task[None] | None = None
        self.has_answered = False
        """Whether the last worker sent a final answer; if not, it was killed."""

    @property
    def is_running(self) -> bool:
        """Return whether a worker is running."""
        return self._following is not None and not self._following.done()

    async def start(self, job: msgspec.Struct) -> str:
        """Start a job, replacing any running one; return why it could not be started, or "" if it is running."""
        await self.stop()
        try:
            self._process = await start_worker(self._module, job)
        except OSError as error:
            return f"The code is not indexed: {error.strerror or error} ({sys.executable})"
        self._following = asyncio.create_task(self._follow(self._process))
        return ""

    async def wait(self) -> None:
        """Wait for the worker to end; return immediately if none is running."""
        if self._following is not None:
            await asyncio.shield(self._following)

    async def stop(self) -> None:
        """Stop the worker if it is running."""
        following, process = self._following, self._process
        self._following = self._process = None
        if following is not None and not following.done():
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None  # noqa: S101
        last = Progress()
        async for line in process.stdout:
            try:
                last = typed.read_json(line, type=Progress)
            except NOT_READABLE:
                _log.warning("the index worker said: %r", line[:200])
                continue
            if not last.is_finished:
                self._on_progress("building", last.done, last.total, "")
        code = await process.wait()
        self.has_answered = last.is_finished
        if last.is_finished and not last.why:
            self._on_progress("ready", last.done, last.total, "")
        else:
            why = (
                last.why or f"The index was not finished (its process ended with {code}); the next question resumes it."
            )
            self._on_progress("unusable", last.done, last.total, why)


async def start_worker(module: str, first: msgspec.Struct) -> asyncio.subprocess.Process:
    """Start one of our modules in a separate process and write the first line of its input; raises `OSError`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/" if os.name == "posix" else None,
        env=worker_environment(),
        start_new_session=True,
        limit=_LINE_LIMIT,
    )
    assert process.stdin is not None  # noqa: S101 - asked for above
    process.stdin.write(msgspec.json.encode(first) + b"\n")
    return process


def worker_environment() -> dict[str, str]:
    """Return the worker's environment: the path of the package, and no variables that could contain API keys."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "SYSTEMROOT")
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120
    found = {name: os.environ[name] for name in kept if name in os.environ}
    return {**found, "PYTHONPATH": package, "PYTHONSAFEPATH": "1"}
