"""How long a test waits for an expected event: one figure, so that a slow machine is configured in one place.

Long on purpose. A test that passes waits as long as the thing takes; only one that fails waits to the end, and then it
is certain that the machine was not merely busy. Continuous integration has two slow cores for three workers, where a
Neovim, its host and the import of an SDK have taken twenty seconds. Below the limit of pytest for a whole test.
"""

from __future__ import annotations

PATIENCE_S = 90.0
