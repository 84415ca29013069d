"""Programs run in their own process group, which never outlives the call."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from codecompanion.errors import ToolError
from codecompanion.tools.process import Ended, run_program
from tests.patience import PATIENCE_S
from tests.unit.tools.conftest import names_in


class _Shell:
    """Runs shell scripts and keeps their output."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.output = b""
        self.printed = asyncio.Event()

    async def run(self, script: str, limit_s: float | None = 30) -> Ended:
        """Run a script; `printed` is set with the first output."""
        return await run_program(
            ["/bin/sh", "-c", script],
            cwd=self._folder,
            env={"PATH": os.environ["PATH"]},
            on_output=self._add,
            limit_s=limit_s,
        )

    def _add(self, chunk: bytes) -> None:
        self.output += chunk
        if self.output.endswith(b"\n"):
            self.printed.set()


@pytest.fixture
def shell(tmp_path: Path) -> _Shell:
    return _Shell(tmp_path)


def _is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def _until_gone(pid: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while _is_alive(pid):  # noqa: ASYNC110 - the kernel has no event for it
            await asyncio.sleep(0.01)


async def test_output_and_errors_are_interleaved_followed_by_the_exit_code(shell: _Shell) -> None:
    ended = await shell.run("echo one; echo two >&2; echo three; exit 7")
    assert (ended.code, shell.output) == (7, b"one\ntwo\nthree\n")


async def test_there_is_no_input_and_no_terminal(shell: _Shell) -> None:
    ended = await shell.run("cat; [ -t 0 ] || [ -t 1 ] || echo none; test -r /dev/tty && : </dev/tty")
    assert shell.output.startswith(b"none\n")
    assert ended.code != 0


async def test_a_signal_is_a_negative_code(shell: _Shell) -> None:
    assert (await shell.run("kill -9 $$")).code == -signal.SIGKILL


@pytest.mark.parametrize("on_signal", ["TERM", "'' TERM HUP INT"], ids=["dies of SIGTERM", "ignores SIGTERM"])
async def test_cancelling_ends_grandchildren_too(shell: _Shell, tmp_path: Path, on_signal: str) -> None:
    """This includes those that ignore SIGTERM (lesson 28, and the issue's `cancel at any moment`)."""
    script = tmp_path / "grandchild.sh"
    script.write_text(f"trap {on_signal}\necho $$\nwhile :; do sleep 0.05; done\n")
    task = asyncio.create_task(shell.run(f"(sh {script}; :) & wait"))
    async with asyncio.timeout(PATIENCE_S):
        await shell.printed.wait()
    grandchild = int(shell.output)
    assert _is_alive(grandchild)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _until_gone(grandchild)


async def test_cancelling_during_the_start_leaves_nothing_running(
    shell: _Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: Neovim exited as a command began; its shell was killed, and the shell's children kept running."""
    start, goes_on = asyncio.create_subprocess_exec, asyncio.Event()

    async def started_slowly(*program: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*program, **options)
        await goes_on.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started_slowly)
    child = tmp_path / "child"
    task = asyncio.create_task(shell.run(f"sleep 1000 & echo $! > {child}.part; mv {child}.part {child}; wait"))
    async with asyncio.timeout(PATIENCE_S):
        while not child.exists():  # noqa: ASYNC110 - the shell has no event for it
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _until_gone(int(child.read_text()))


async def test_the_time_limit_ends_the_group_and_keeps_what_was_printed(shell: _Shell) -> None:
    ended = await shell.run("sleep 1000 & echo $!; wait", limit_s=1.5)
    assert ended.code is None
    await _until_gone(int(shell.output))


async def test_background_processes_are_ended_and_reported(shell: _Shell) -> None:
    ended = await shell.run("sleep 1000 & echo $!")
    assert ended == Ended(0, left_running=True)
    await _until_gone(int(shell.output))


async def test_a_background_process_without_our_pipe_is_ended_as_well(shell: _Shell) -> None:
    ended = await shell.run("sleep 1000 >/dev/null 2>&1 </dev/null & echo $!")
    assert ended == Ended(0, left_running=True)
    await _until_gone(int(shell.output))


async def test_a_program_that_escapes_its_group_does_not_hang_the_call(shell: _Shell) -> None:
    """A daemon keeps the pipe open forever; the call ends anyway."""
    async with asyncio.timeout(PATIENCE_S):
        ended = await shell.run("mkfifo begun; setsid sh -c 'echo $$ >begun; exec sleep 1000' & cat begun")
    assert ended.code == 0
    os.kill(int(shell.output), signal.SIGKILL)


async def test_endless_output_does_not_block_the_loop(shell: _Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    received, enough = 0, asyncio.Event()

    def count(chunk: bytes) -> None:
        nonlocal received
        received += len(chunk)
        if received > 50_000_000:
            enough.set()

    monkeypatch.setattr(shell, "_add", count)
    task = asyncio.create_task(shell.run("yes"))
    async with asyncio.timeout(PATIENCE_S):
        await enough.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_program_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    before = len(names_in(Path("/proc/self/fd")))
    with pytest.raises(ToolError, match=r"no-such-program cannot be started in .*no such file"):
        await run_program(["no-such-program"], cwd=tmp_path, env={}, on_output=lambda chunk: None)
    assert len(names_in(Path("/proc/self/fd"))) == before


async def test_no_file_descriptors_are_leaked(shell: _Shell) -> None:
    await shell.run("echo x")
    before = len(names_in(Path("/proc/self/fd")))
    for _ in range(3):
        await shell.run("echo x")
    await asyncio.sleep(0)
    assert len(names_in(Path("/proc/self/fd"))) == before
