"""How much of something random or exhaustive a run looks at: quick (`make check`), as usual, or thorough (`make fuzz`).

The profile of hypothesis says which (HYPOTHESIS_PROFILE), so that there is one switch.
"""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "people")


def amount(quick: int, usual: int, thorough: int) -> int:
    """Return the amount that belongs to this run."""
    return {"quick": quick, "thorough": thorough}.get(PROFILE, usual)
