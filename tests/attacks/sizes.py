"""How many attacks a suite tries: a few seconds' worth in every run of the tests, all of them with ATTACKS=full."""

from __future__ import annotations

import os

FULL = os.environ.get("ATTACKS", "") == "full"


def amount(short: int, *, full: int) -> int:
    """Return how many attacks of a kind this run tries."""
    return full if FULL else short
