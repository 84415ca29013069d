"""How long a test waits for an expected event: one number, so that a slow machine is configured in one place.

It is long on purpose. A passing test waits only until the event; a failing one waits to the end, and then it is certain
that the machine was not merely busy. Continuous integration has two slow cores for three workers, where a Neovim, its
host and the import of an SDK have taken twenty seconds. The number is below pytest's limit for a whole test.
"""

from __future__ import annotations

PATIENCE_S = 90.0
