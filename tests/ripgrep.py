"""The ripgrep for searches in tests: installed by `make setup` next to Python, so all machines test the same version.

It is not on the PATH: everything else is tested as on a machine without it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

RIPGREP = shutil.which("rg", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="there is no ripgrep for this machine")
