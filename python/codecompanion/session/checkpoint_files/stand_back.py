"""Long work in a thread that stands back: a slice, then a rest in which the loop and other threads have the GIL.

Whoever else wants to run waits for a slice at most; without the pauses each of its steps would wait for a switch of
threads (5 ms) as long as the work goes on. Work that somebody waits for does not rest: it only offers the GIL.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SLICE_S, MAX_REST_S = 0.002, 0.02
AT_LEISURE, AWAITED = 4.0, 0.0
"""The length of a rest, in slices: when nobody waits for the work, and when somebody does (a sleep of 0 only switches
to a thread that wants to run)."""


class StandBack:
    """Called between pieces of work, sleeps once a slice is over."""

    def __init__(self, is_awaited: Callable[[], bool] = lambda: False) -> None:
        """`is_awaited` says whether somebody waits for the work by now."""
        self._is_awaited, self._began = is_awaited, time.perf_counter()

    def __call__(self) -> None:
        """Sleep if it is time to."""
        worked = time.perf_counter() - self._began
        if worked >= SLICE_S:
            time.sleep(min(MAX_REST_S, worked * (AWAITED if self._is_awaited() else AT_LEISURE)))
            self._began = time.perf_counter()
