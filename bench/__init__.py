"""Benchmarks. Importing this package makes the plugin's package, the tests and the Neovim driver importable."""

import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO), str(REPO / "python"), str(REPO / "tests" / "nvim")]
