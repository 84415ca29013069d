"""Guards against running away: requests per turn, repeated calls (R-336, lessons 5, 40).

Pure functions over what happened; the session asks them before it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

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
