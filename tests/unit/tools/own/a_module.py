"""A module with a function that a test makes a tool of."""

from __future__ import annotations

import math


def floor(value: float) -> int:
    """Round down."""
    return math.floor(value)
