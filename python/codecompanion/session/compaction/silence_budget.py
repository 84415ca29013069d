"""Limits the total silence of one run's summary calls (lesson 18). Pure; used by `compaction`."""

from __future__ import annotations


class SilenceBudget:
    """Sums the silence of calls in seconds; of calls that wait at the same time, only the longest counts."""

    def __init__(self, total_s: float) -> None:
        self.total_s = total_s
        self._before_s = self._longest_s = 0.0

    def begin_batch(self) -> None:
        """Count the following calls as waiting at the same time."""
        self._before_s, self._longest_s = self._before_s + self._longest_s, 0.0

    def take(self, waited_s: float) -> None:
        """Count the silence of one call."""
        self._longest_s = max(self._longest_s, waited_s)

    @property
    def left_s(self) -> float:
        """Return the remaining seconds; 0 or less when the budget is spent."""
        return self.total_s - self._before_s - self._longest_s
