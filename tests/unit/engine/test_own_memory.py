"""What a command of the model can read of the host through `/proc`: nothing (lesson 44)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_HOST = """
import os, subprocess, sys
from codecompanion.engine.own_memory import close_own_memory
import ctypes
if os.getuid() == 0:  # root may read anything: become nobody, and dumpable again
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
    """The host itself, and what commands see of themselves, work as before."""
    assert "pencil-12345" in _seen_by_a_command("open")[1]
    assert _seen_by_a_command("closed") == ["0", "b''", "['0'] b'A=b\\x00'"]


def _seen_by_a_command(how: str) -> list[str]:
    environment = {**os.environ, "MY_KEY": "pencil-12345"}
    argv = [sys.executable, "-c", _HOST, how]
    host = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert host.stderr == ""
    return host.stdout.splitlines()
