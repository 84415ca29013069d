"""The number of attacks per suite: a few seconds' worth in every test run, all of them with ATTACKS=full."""

from __future__ import annotations

import os

FULL = os.environ.get("ATTACKS", "") == "full"


def amount(short: int, *, full: int) -> int:
    """Return the number of attacks of a kind in this run."""
    return full if FULL else short
