"""Runs a program in a separate process group, which never outlives the call.

Standard input is empty or a file; there is no terminal. Output is passed on as it arrives. At the time limit, on
cancellation, and if the program ends but leaves processes running, the whole group is ended: first with SIGTERM, then
killed. A process that creates a session (`setsid`, daemons) escapes that, unless the program runs in the sandbox, where
the launcher ends everything on request through a pipe (`sandbox/inside/launcher.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

import msgspec

from codecompanion.errors import ToolError
from codecompanion.formats.text_files import reason
from codecompanion.tools.sandbox.confined import Confined, Launcher, Pipes, Report, launcher_pipes
from codecompanion.tools.sandbox.host_proxy import HostProxy
from codecompanion.waiting import made_or_undone

TERMINATE_S = 0.5
"""Seconds that a process group is given to end after SIGTERM."""

LAUNCHER_S = 3.0
"""Seconds that the launcher is given to end everything in the sandbox.

It kills the remaining processes after `GRACE_S`; only its own exit proves that none are left. If the launcher is
killed, the kernel has to end them, which takes a moment.
"""

DRAIN_S = 0.5
"""Seconds to wait for output after the program has ended, if another process still has the pipe open."""


LISTENER_S = 10.0
"""Seconds that the launcher is given to open the proxy's listening socket before the command starts."""


class Ended(msgspec.Struct, frozen=True):
    """How a program ended. `code` is None after a timeout and negative after a signal.

    `left_running`: the program left processes running, which were ended. `excess`: the sandbox limit that ended the
    program. `has_begun` is False if the sandbox ended before the command began.
    """

    code: int | None
    left_running: bool = False
    excess: Literal["", "processes", "memory"] = ""
    has_begun: bool = True


Confine = Callable[[Pipes], Confined]
"""A function that returns how to start the program in the sandbox; called in a thread."""


class _Reader(asyncio.Protocol):
    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        self._on_output = on_output
        self.at_end = asyncio.Event()

    def data_received(self, chunk: bytes) -> None:
        self._on_output(chunk)

    def connection_lost(self, error: Exception | None) -> None:
        self.at_end.set()


async def run_program(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    on_output: Callable[[bytes], None],
    stdin: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
    limit_s: float | None = None,
    confine: Confine | None = None,
    proxy: HostProxy | None = None,
) -> Ended:
    """Run the program until it ends. Standard error is merged into standard output unless `stderr` is given.

    With `confine`, the program runs in the sandbox, which replaces `argv` and `env`; its only network access is
    `proxy`.

    Raises: ToolError: the program cannot be started. asyncio.CancelledError: the awaiting task was cancelled; the
    process group has ended.
    """
    pipes = launcher_pipes(with_proxy=proxy is not None) if confine is not None else contextlib.nullcontext()
    with pipes as launcher:
        pass_fds: tuple[int, ...] = ()
        read_end, write_end = os.pipe()
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            try:
                if confine is not None and launcher is not None:
                    confined = await asyncio.to_thread(confine, launcher.theirs)
                    argv, env = confined.argv, confined.environment
                    pass_fds = launcher.theirs.inherited()
                process = await made_or_undone(
                    asyncio.create_subprocess_exec(
                        *argv,
                        stdin=stdin or asyncio.subprocess.DEVNULL,
                        stdout=write_end,
                        stderr=stderr or write_end,
                        cwd=cwd,
                        env=dict(env),
                        start_new_session=True,
                        pass_fds=pass_fds,
                    ),
                    _end_group,
                )
            except (OSError, ValueError) as error:
                raise ToolError(f"{argv[0]} cannot be started in {cwd}: {reason(error)}.") from error
            finally:
                os.close(write_end)
                if launcher is not None:
                    launcher.close_theirs()
            try:
                if proxy is not None and launcher is not None:
                    listener = await asyncio.to_thread(launcher.proxy_listener, LISTENER_S)
                    if listener is not None:
                        await proxy.serve(listener)
                return await _follow(process, pipe, on_output, limit_s, launcher)
            finally:
                await _end_group(process, launcher)
                if proxy is not None:
                    await proxy.close()


async def _follow(
    process: asyncio.subprocess.Process,
    pipe: IO[bytes],
    on_output: Callable[[bytes], None],
    limit_s: float | None,
    launcher: Launcher | None,
) -> Ended:
    reader = _Reader(on_output)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: reader, pipe)
    try:
        code: int | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                code = await process.wait()
        if code is not None:
            await _wait(reader.at_end, DRAIN_S)
        left_running = code is not None and _group_lives(process.pid)
        await _end_group(process, launcher)
        await _wait(reader.at_end, DRAIN_S)
        return Ended(code, left_running) if launcher is None else _ended_inside(code, launcher.report())
    finally:
        transport.close()


def _ended_inside(code: int | None, report: Report | None) -> Ended:
    """Return how a sandboxed command ended, judging by its parent's exit code and the launcher's report.

    Raises: ToolError: the sandbox could not be built.
    """
    if code is None:
        return Ended(None)
    if report is None:
        return Ended(code)
    if not report.has_begun:
        return Ended(code, has_begun=False)
    if report.problem:
        raise ToolError(f"The command cannot be started in the sandbox: {report.problem}.")
    return Ended(report.code, report.left, report.excess)


async def _wait(event: asyncio.Event, limit_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await event.wait()


def _group_lives(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _end_group(process: asyncio.subprocess.Process, launcher: Launcher | None = None) -> None:
    """End every process of the group and wait for the program itself."""
    if process.returncode is not None and not _group_lives(process.pid):
        return
    try:
        if launcher is None:
            _signal_group(process.pid, signal.SIGTERM)
        else:
            launcher.ask_to_end()
        if process.returncode is None:
            await _finish(process, TERMINATE_S if launcher is None else LAUNCHER_S)
    finally:
        _signal_group(process.pid, signal.SIGKILL)
    await _finish(process, TERMINATE_S)


async def _finish(process: asyncio.subprocess.Process, limit_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await process.wait()


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
