"""Every benchmark can be imported, so that a renamed module breaks a test and not the next measurement."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[3]


def test_every_module_of_the_bench_can_be_imported() -> None:
    """The modules are imported in a separate process, because some scripts change `sys.path`."""
    names = sorted(f"bench.{path.stem}" for path in (REPO / "bench").glob("*.py"))
    assert len(names) > 40
    paths = [str(REPO), str(REPO / "python"), str(REPO / "bench")]
    code = f"import sys, importlib; sys.path[:0] = {paths}; [importlib.import_module(name) for name in {names}]"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
