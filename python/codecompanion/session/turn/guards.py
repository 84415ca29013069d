"""Guards of a turn: requests per turn, repeated calls, a full window (R-336, R-535, lessons 5, 40).

Pure functions over what happened; the session asks them before it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.model.messages import ToolCall, Usage

REPEAT_WINDOW = 10
REPEAT_LIMIT = 4
KEPT_BACK_TOKENS = 8
"""llama.cpp and vLLM stop at the window or a token below it."""


def over_request_limit(requests: int, limit: int) -> str:
    """Return why a turn must stop after so many provider requests, "" when it may go on; a negative limit is none."""
    if limit < 0 or requests < limit:
        return ""
    return (
        f"Stopped after {requests} model requests in one turn (max_provider_requests_per_turn = {limit})."
        " Send a message to go on."
    )


def fills_window(usage: Usage | None, window_tokens: int) -> bool:
    """Return whether prompt and reply fill the window, by the provider's own figures; servers keep a few tokens back.

    Local servers say "length" for this as for the output limit; asking for the rest needs room first (R-535).
    """
    if usage is None or not usage.prompt_tokens:
        return False
    return usage.prompt_tokens + usage.output_tokens >= window_tokens - KEPT_BACK_TOKENS


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
