"""A module with a function that a test turns into a tool."""

from __future__ import annotations

import math


def floor(value: float) -> int:
    """Round down."""
    return math.floor(value)
