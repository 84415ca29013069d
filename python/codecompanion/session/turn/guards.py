"""Guards against running away: requests per turn, repeated calls, useless compactions (R-336, R-532, lessons 5, 40).

Pure functions over what happened; the session asks them before it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.context.policy.schema import Cooldown
from codecompanion.model.messages import ToolCall

REPEAT_WINDOW = 10
REPEAT_LIMIT = 4


def over_request_limit(requests: int, limit: int) -> str:
    """Return why a turn must stop after so many provider requests, "" when it may go on; a negative limit is none."""
    if limit < 0 or requests < limit:
        return ""
    return (
        f"Stopped after {requests} model requests in one turn (max_provider_requests_per_turn = {limit})."
        " Send a message to go on."
    )


def repeated_call(recent: Sequence[ToolCall]) -> str:
    """Return why a turn must stop because one call keeps coming back, "" otherwise (R-336).

    `recent` are the calls of the turn, oldest first; the same name and arguments 4 times among the newest 10 is a loop.
    """
    window = [(call.name, call.arguments) for call in recent[-REPEAT_WINDOW:]]
    for name, arguments in reversed(window):
        if window.count((name, arguments)) >= REPEAT_LIMIT:
            return (
                f"Stopped: the model called {name} with the same arguments {REPEAT_LIMIT} times"
                f" within {len(window)} calls. Tell it what to do differently."
            )
    return ""


PAUSE_ENDS_WITH_GROWTH = 0.05
"""Share of the window a request must have grown by to end a pause early: one long loop is a single cycle."""


PAUSE_GROWS_TO = 8
"""Each pause without a success in between is twice as long as the one before, up to this many times the first."""


class CompactionGuard(msgspec.Struct, frozen=True):
    """How automatic compaction has fared: failures in a row, pauses since the last success, the end of the pause.

    A pause ends with the cycle or the size of the request (tokens) that it names.
    """

    failures: int = 0
    pauses: int = 0
    paused_until_cycle: int = 0
    paused_until_tokens: int = 0

    def allows(self, cycle: int, tokens: int) -> bool:
        """Return whether automatic compaction may be tried in this cycle, at this size of the request."""
        return cycle >= self.paused_until_cycle or tokens >= self.paused_until_tokens

    def after_success(self) -> CompactionGuard:
        """Return the guard after a compaction that helped."""
        return CompactionGuard()

    def after_failure(self, cycle: int, tokens: int, window: int, cooldown: Cooldown) -> CompactionGuard:
        """Return the guard after a failed or useless compaction; a pause begins with the last one allowed.

        After a pause there is one try before the next, longer one. In a small window one tool result is growth enough:
        a pause ends early only above the size that ended the one before.
        """
        failures = self.failures + 1
        if failures < cooldown.failures:
            return msgspec.structs.replace(self, failures=failures)
        longer = min(2**self.pauses, PAUSE_GROWS_TO)
        return CompactionGuard(
            cooldown.failures - 1,
            self.pauses + 1,
            cycle + longer * cooldown.cycles,
            max(tokens, self.paused_until_tokens) + longer * int(PAUSE_ENDS_WITH_GROWTH * window),
        )
