"""Runs between the host and one MCP server as a separate program, so that the server does not outlive the host.

Run as `python -I -S supervisor.py LIFELINE COMMAND…`, with only the standard library. LIFELINE is the read end of a
pipe whose write end only the host has: when the host exits for any reason, the pipe closes, and the supervisor ends the
server and all its processes. Standard input and output belong to the server; the supervisor closes its own copies.

On Linux, processes that detached themselves (daemons) become children of the supervisor and are ended too, and the
kernel kills a server whose supervisor was killed. Elsewhere the process group is ended.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

ASKED_S = 1.0
"""Seconds to wait for the server to exit after SIGTERM before killing it."""
_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36
IS_LINUX = sys.platform.startswith("linux")


def _control_process(option: int, value: int) -> None:
    if IS_LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _children() -> list[int]:
    """Return the current child processes of the supervisor."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return []


def _signal_all(group: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)
    for pid in _children():
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _reap() -> bool:
    """Reap the children that have exited; return whether any are left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def end_all(group: int) -> None:
    """End the server and its remaining processes, first with SIGTERM, then with SIGKILL."""
    deadline = time.monotonic() + ASKED_S
    _signal_all(group, signal.SIGTERM)
    while _reap() and time.monotonic() < deadline:
        time.sleep(0.01)
    deadline = time.monotonic() + ASKED_S
    while _reap() and time.monotonic() < deadline:
        _signal_all(group, signal.SIGKILL)
        time.sleep(0.01)
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)


def main(lifeline: int, command: list[str]) -> int:
    """Run the command until it or the host exits; return its exit status."""
    os.set_inheritable(lifeline, False)
    _control_process(_SET_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(write_end, b"."))
    read_end, write_end = os.pipe()
    ended, on_end = os.pipe()
    os.set_blocking(on_end, False)
    signal.set_wakeup_fd(on_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    supervisor = os.getpid()

    def before_the_server() -> None:
        _control_process(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)

    try:
        server = subprocess.Popen(command, process_group=0, preexec_fn=before_the_server)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 127
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    while server.poll() is None:
        ready, _, _ = select.select([lifeline, read_end, ended], [], [])
        if lifeline in ready or read_end in ready:
            break
        os.read(ended, 512)
    end_all(server.pid)
    return server.returncode or 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
