"""What all tests share: a clean environment, how many examples hypothesis looks at, whether they are new each time.

People look at new examples in every run; `make ci` (HYPOTHESIS_PROFILE=ci) at the same ones each time, so that a change
is judged by what it changed. A failure found by chance is then mended like any other.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings

from tests.machine_state import clean_the_environment

_HOME = Path(tempfile.mkdtemp(prefix="codecompanion-tests-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
clean_the_environment(_HOME)

settings.register_profile("ci", derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
