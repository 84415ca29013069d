"""`python -m codecompanion.engine`: what is set for the whole process before the host runs."""

from __future__ import annotations

import subprocess
import sys

RUN = """
import gc, sys
from codecompanion.engine import bridge
from codecompanion.engine.__main__ import main
bridge.serve = lambda path: print(sys.getswitchinterval(), gc.isenabled()) or 0
sys.exit(main(["host.py"]))
"""


def test_threads_of_a_host_take_turns_often() -> None:
    """A stream waits for a working thread at each step of every piece."""
    ran = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True)
    interval, collects = ran.stdout.split()
    assert float(interval) < 0.002
    assert collects == "False"
