"""Runs long work in a thread in slices, followed by pauses in which the event loop and other threads get the GIL.

Other threads wait for at most one slice; without the pauses, each of their steps would wait for a thread switch (5 ms)
while the work runs. Awaited work does not sleep: it only offers the GIL.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SLICE_S, MAX_REST_S = 0.002, 0.02
AT_LEISURE, AWAITED = 4.0, 0.0
"""Length of a pause as a multiple of the slice, for background work and for awaited work.

A sleep of 0 only switches to a waiting thread.
"""


class Throttle:
    """Called between pieces of work; sleeps at the end of a slice."""

    def __init__(self, is_awaited: Callable[[], bool] = lambda: False) -> None:
        """Begin a slice. `is_awaited` returns whether a caller is currently waiting for the work."""
        self._is_awaited, self._began = is_awaited, time.perf_counter()

    def __call__(self) -> None:
        """If the slice is over, sleep and begin a new one."""
        worked = time.perf_counter() - self._began
        if worked >= SLICE_S:
            time.sleep(min(MAX_REST_S, worked * (AWAITED if self._is_awaited() else AT_LEISURE)))
            self._began = time.perf_counter()
