"""Makes helper functions available by name to the tests in this folder, including those of the Neovim tests."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "nvim")]
