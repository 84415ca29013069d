"""Runs the command line as an outside caller does: one process per call, forked unless the start itself is tested."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.forked_python import forked_python
from tests.patience import PATIENCE_S

REPO = Path(__file__).resolve().parents[2]


def run(
    *arguments: str, stdin: str = "", timeout_s: float = PATIENCE_S, fork: bool = True, **environment: str
) -> tuple[int, str, str]:
    """Run `python -m codecompanion`; return (exit status, standard output, standard error)."""
    done = subprocess.run(
        [forked_python() if fork else sys.executable, "-m", "codecompanion", *arguments],
        input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False,
        env={**os.environ, "PYTHONPATH": str(REPO / "python"), **environment},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr
