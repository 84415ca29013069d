"""The number of random or exhaustive cases per run: quick (`make check`), usual, or thorough (`make fuzz`).

The Hypothesis profile (HYPOTHESIS_PROFILE) selects the number, so that there is one switch.
"""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "people")


def amount(quick: int, usual: int, thorough: int) -> int:
    """Return the number of cases for this run."""
    return {"quick": quick, "thorough": thorough}.get(PROFILE, usual)
