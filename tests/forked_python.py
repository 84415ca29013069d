"""A Python with its imports done: forks of one process that has imported the modules of a host and the command line.

A host takes 0.7 s of CPU before it answers, 0.2 s for its first chat and 1 to 2 s for an SDK, a command 0.6 s; most
tests are about neither. `forked_python()` is an executable that can replace a Python. Its runs (`-m codecompanion …`,
`-m codecompanion.engine …`) are separate processes, from `__main__` on, with the descriptors, folder, environment and
arguments of the caller. Calls that a fork cannot handle go to the actual Python: any other argument, another locale,
another PYTHONPATH. Tests about startup, about imported modules, and about the system's view of a process (its first
environment) use `sys.executable`.

The launcher represents the process: it forwards signals and ends as the process does; if the launcher is killed, the
process is killed. `process_of` returns the process that it started, to stop or inspect it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, NoReturn, TextIO

REPO = Path(__file__).resolve().parents[1]
SHARED = "FORKED_PYTHON"
MODULES = ("codecompanion", "codecompanion.engine")
IMPORTED = (
    *("openai", "openai.types.chat", "openai.types.responses", "anthropic", "anthropic.types.beta", "tiktoken"),
    *("mcp", "mcp.client.stdio", "mcp.client.streamable_http", "mcp.client.session_group", "pynvim", "turbohtml"),
    *("anyio._backends._asyncio", "anyio.streams.tls", "httpcore2._async", "genai_prices.data_snapshot"),
    *("pathspec.gitignore", "tree_sitter", "tree_sitter_python", "tree_sitter_markdown"),
)
"""Modules imported in addition to the package: lazy imports that most tests of a group need."""

_LAUNCHER = """#!{python} -IS
import sys, posix

PYTHON, MODULES = {python!r}, {modules!r}
env = posix.environ
own = {{name for name in env if name.startswith(b"PYTHON")}} - {{b"PYTHONPATH", b"PYTHONSAFEPATH"}}
locale = env.get(b"LC_ALL") or env.get(b"LC_CTYPE") or env.get(b"LANG")
fits = len(sys.argv) > 2 and sys.argv[1] == "-m" and sys.argv[2] in MODULES and not own
fits = fits and env.get(b"PYTHONPATH") == {path!r} and locale == {locale!r}
if fits:
    import _signal, _socket, array, marshal

    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        server.connect({socket!r})
    except OSError:
        fits = False
if not fits:
    posix.execve(PYTHON, [PYTHON, *sys.argv[1:]], env)

descriptors = array.array("i", [0, 1, 2, posix.open(b".", posix.O_RDONLY)])
asked = marshal.dumps((sys.argv[2:], env))
server.sendmsg([b"%8d" % len(asked)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
server.sendall(asked)
pid = int(server.recv(8))
for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT):
    _signal.signal(number, lambda number, frame: posix.kill(pid, number))
for descriptor in (0, 1, 2):
    posix.close(descriptor)
status = int(server.recv(8) or b"1")
if status < 0:
    _signal.signal(-status, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -status)
posix._exit(status)
"""


@cache
def forked_python() -> str:
    """Return the path of the executable; all workers of a run share one, and its processes end with the run."""
    return os.environ.get(SHARED) or _start()


def share_one() -> None:
    """Share one executable among the pytest-xdist workers that are about to start."""
    os.environ[SHARED] = _start()


def _start() -> str:
    # Not known to the process that is forked.
    from tests.leftovers import kept_for_the_run
    from tests.patience import PATIENCE_S

    folder = Path(tempfile.mkdtemp(prefix="forked-python-"))
    environment = {**os.environ, "PYTHONPATH": str(REPO / "python"), "LC_ALL": "C.UTF-8"}
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(64)
    with kept_for_the_run():
        server = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            env=environment,
            cwd=REPO,
        )
    listener.close()

    def end() -> None:
        server.stdin.close()  # type: ignore[union-attr]
        server.wait(PATIENCE_S)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    launcher = folder / "python"
    launcher.write_text(
        _LAUNCHER.format(
            python=sys.executable,
            modules=MODULES,
            locale=environment["LC_ALL"].encode(),
            path=environment["PYTHONPATH"].encode(),
            socket=str(folder / "socket"),
        )
    )
    launcher.chmod(0o700)
    return str(launcher)


def process_of(pid: int) -> int:
    """Return the process that does the work: the one started by a launcher, or any other process itself."""
    started = Path(forked_python()).with_name(f"socket-{pid}")
    return int(started.read_text()) if started.exists() else pid


# ---- the process that is forked


def main(descriptor: int) -> None:
    """Fork for each request until stdin is closed; modules are imported at the first request."""
    listener = socket.socket(fileno=descriptor)
    if 0 in select.select([0, listener], [], [])[0]:
        return
    sys.path[0] = str(REPO / "python")  # not this folder, where `mcp` are tests
    for name in (*own_modules(), *IMPORTED):
        importlib.import_module(name)
    assert threading.active_count() == 1, threading.enumerate()
    gc.freeze()
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[socket.socket, Child] = {}
    while True:
        ready, _, _ = select.select([0, listener, woken, *children], [], [])
        if 0 in ready:
            break
        if woken in ready:
            woken.recv(4096)
            _tell_who_ended(children)
        for asking in set(ready) & set(children):
            with contextlib.suppress(ProcessLookupError):  # the launcher was killed
                _forget(asking, children).kill()
        if listener in ready:
            asking = listener.accept()[0]
            with contextlib.suppress(OSError, ValueError):
                _fork(asking, children, [listener, woken, wake, *children])
    for child in children.values():
        child.kill()


def own_modules() -> Iterator[str]:
    """Return the modules of the package, except those that run when imported."""
    package = importlib.import_module("codecompanion")
    for module in pkgutil.walk_packages(package.__path__, "codecompanion."):
        if module.name not in ("codecompanion.__main__", "codecompanion.engine.__main__"):
            yield module.name


class Child(NamedTuple):
    """A forked process, and the file that identifies it to `process_of` while it runs, as process ids are reused."""

    pid: int
    named: Path

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _forget(asking: socket.socket, children: dict[socket.socket, Child]) -> Child:
    child = children.pop(asking)
    child.named.unlink(missing_ok=True)
    asking.close()
    return child


def _tell_who_ended(children: dict[socket.socket, Child]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            for asking in [asking for asking, child in children.items() if child.pid == ended[0]]:
                with contextlib.suppress(OSError):
                    asking.sendall(b"%8d" % os.waitstatus_to_exitcode(ended[1]))
                _forget(asking, children)


def _fork(asking: socket.socket, children: dict[socket.socket, Child], ours: list[socket.socket]) -> None:
    head, descriptors, _, _ = socket.recv_fds(asking, 8, 4)
    left, parts = int(head), []
    while left:
        parts.append(asking.recv(left))
        left -= len(parts[-1]) or left
    arguments, environment = marshal.loads(b"".join(parts))  # noqa: S302 (from the launcher next door)
    launcher, _, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    pid = os.fork()
    if pid == 0:
        for one in (asking, *ours):
            one.close()
        _become(arguments, environment, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    named = Path(f"{ours[0].getsockname()}-{launcher}")
    unnamed = named.with_name("unnamed")
    unnamed.write_text(str(pid))
    unnamed.replace(named)  # complete as soon as it exists
    children[asking] = Child(pid, named)
    asking.sendall(b"%8d" % pid)


def _become(arguments: list[str], environment: dict[bytes, bytes], descriptors: list[int]) -> NoReturn:
    """Continue as a newly started Python with these arguments."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.fchdir(descriptors[3])
    for number, descriptor in enumerate(descriptors):
        if number < 3:
            os.dup2(descriptor, number)
        os.close(descriptor)
    os.environb.clear()
    os.environb.update(environment)
    time.tzset()
    tempfile.tempdir = None
    sys.stdin = sys.__stdin__ = _stream(0, "r", sys.stdin.errors)
    sys.stdout = sys.__stdout__ = _stream(1, "w", sys.stdout.errors)
    sys.stderr = sys.__stderr__ = _stream(2, "w", "backslashreplace")
    if "PYTHONSAFEPATH" in os.environ:
        del sys.path[0]
    else:
        sys.path[0] = str(Path.cwd())
    sys.argv = ["-m", *arguments[1:]]
    os._exit(_run(arguments[0]))


def _stream(descriptor: int, mode: str, errors: str | None) -> TextIO:
    """Return a standard stream as the interpreter makes it."""
    by_line = mode == "w" and (descriptor == 2 or os.isatty(descriptor))
    kind = sys.stdout.encoding
    return open(descriptor, mode, 1 if by_line else -1, kind, errors, "\n", closefd=False)  # type: ignore[return-value]


def _run(module: str) -> int:
    """Run the module to its end, including the interpreter's shutdown; return the exit status."""
    status: object = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        status = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    try:
        sys.stdout.flush()
    except OSError:
        return 120
    return status or 0


if __name__ == "__main__":
    main(int(sys.argv[1]))
