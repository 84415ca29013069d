"""How long the summary calls of one run may bring nothing, all together (lesson 18). Pure; `compaction` asks."""

from __future__ import annotations


class SilenceBudget:
    """Counts the silence of calls in batches: calls that wait at the same time are waited for once. In seconds."""

    def __init__(self, total_s: float) -> None:
        self.total_s = total_s
        self._before_s = self._longest_s = 0.0

    def begin_batch(self) -> None:
        """Count the calls from here on as waiting at the same time."""
        self._before_s, self._longest_s = self._before_s + self._longest_s, 0.0

    def take(self, waited_s: float) -> None:
        """Count the silence of one call."""
        self._longest_s = max(self._longest_s, waited_s)

    @property
    def left_s(self) -> float:
        """Return how much silence is left; 0 or less when it is spent."""
        return self.total_s - self._before_s - self._longest_s
