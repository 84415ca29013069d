"""What all tests share: how many examples hypothesis looks at, and whether they are new each time.

People look at new examples in every run; `make ci` (HYPOTHESIS_PROFILE=ci) at the same ones each time, so that a change
is judged by what it changed. A failure found by chance is then mended like any other.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
