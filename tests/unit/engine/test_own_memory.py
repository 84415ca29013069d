"""A model's command can read none of the host's files in `/proc` (lesson 44)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_HOST = """
import os, subprocess, sys
from codecompanion.engine.own_memory import close_own_memory
import ctypes
if os.getuid() == 0:  # root may read anything: become an ordinary user, and dumpable again
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
assert sys.argv[1] == "open" or close_own_memory()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
names = ("environ", "maps", "fd/0")
shell = "; ".join(f"cat /proc/{os.getpid()}/{name} 2>/dev/null" for name in names)
print(subprocess.run(["/bin/sh", "-c", shell], capture_output=True, stdin=subprocess.DEVNULL).stdout)
print(sorted(os.listdir("/proc/self/fd"))[:1], subprocess.run(["/bin/cat", "/proc/self/environ"],
      capture_output=True, env={"A": "b"}).stdout)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux offers it")
def test_a_command_cannot_read_the_hosts_environment_or_memory() -> None:
    """The host itself, and the commands' own files, work as before."""
    assert "pencil-12345" in _seen_by_a_command("open")[1]
    assert _seen_by_a_command("closed") == ["0", "b''", "['0'] b'A=b\\x00'"]


def _seen_by_a_command(how: str) -> list[str]:
    environment = {**os.environ, "MY_KEY": "pencil-12345"}
    argv = [sys.executable, "-c", _HOST, how]
    host = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert host.stderr == ""
    return host.stdout.splitlines()


_TRACER = """
import subprocess, sys
from codecompanion.engine.own_memory import give_up_tracing
assert sys.argv[1] == "open" or give_up_tracing()
print(subprocess.run(["cat", f"/proc/{sys.argv[2]}/environ"], capture_output=True).stdout)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="only root may look anyway")
def test_a_program_that_a_host_of_root_starts_cannot_read_the_editors_environment() -> None:
    environment = {**os.environ, "CANARY": "pencil-67890"}
    closed = (
        "from codecompanion.engine.own_memory import close_own_memory as close; close(); print(1, flush=True); input()"
    )
    argv = [sys.executable, "-c", closed]
    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as editor:
        try:
            assert editor.stdout is not None
            editor.stdout.readline()
            seen = [
                subprocess.run([sys.executable, "-c", _TRACER, how, str(editor.pid)], capture_output=True, check=True)
                for how in ("open", "closed")
            ]
        finally:
            editor.kill()
    assert b"pencil-67890" in seen[0].stdout
    assert seen[1].stdout.strip() == b"b''"


_EDITOR = """
local closes = {how}
if closes then assert(require('codecompanion.host.own_memory').close()) end
local shell = 'cat /proc/' .. vim.fn.getpid() .. '/environ'
io.stdout:write(vim.fn.system(shell))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux offers it")
def test_a_program_of_the_user_cannot_read_neovims_environment() -> None:
    assert "pencil-24680" in _seen_by_a_job("false")
    assert "pencil-24680" not in _seen_by_a_job("true")


def _seen_by_a_job(closes: str) -> str:
    nvim = shutil.which("nvim") or str(Path(sys.prefix) / "bin/nvim")
    root = Path(__file__).parents[3]
    script = _EDITOR.replace("{how}", closes).replace("\n", " ")
    argv = [nvim, "--clean", "--headless", "--cmd", f"set rtp^={root}", "-c", f"lua {script}", "-c", "qa!"]
    nobody = {"user": 65534, "group": 65534, "extra_groups": ()} if os.geteuid() == 0 else {}
    environment = {"CANARY": "pencil-24680", "PATH": os.defpath, "HOME": "/nonexistent", "NVIM_LOG_FILE": "/dev/null"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, cwd="/", **nobody)
    assert "Error" not in done.stderr, done.stderr
    return done.stdout
