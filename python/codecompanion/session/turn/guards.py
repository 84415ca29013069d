"""Checks whether a turn must stop: too many requests, repeated calls, a full window (R-336, R-535, lessons 5, 40).

Pure functions; the session calls them before it continues a turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.model.messages import ToolCall, Usage

REPEAT_WINDOW = 10
REPEAT_LIMIT = 4
KEPT_BACK_TOKENS = 8
"""Number of tokens below the window size at which the window counts as full; llama.cpp and vLLM stop at most one token
early.
"""


def over_request_limit(requests: int, limit: int) -> str:
    """Return why a turn must stop after this many provider requests, or "" if it may continue.

    A negative limit means none.
    """
    if limit < 0 or requests < limit:
        return ""
    return (
        f"Stopped after {requests} model requests in one turn (max_provider_requests_per_turn = {limit})."
        " Send a message to continue."
    )


def fills_window(usage: Usage | None, window_tokens: int) -> bool:
    """Return whether prompt and reply fill the context window, according to the reported usage.

    Servers reserve a few tokens.

    Local servers report "length" both for a full window and for the output limit; only a full window must be freed
    before a continuation (R-535).
    """
    if usage is None or not usage.prompt_tokens:
        return False
    return usage.prompt_tokens + usage.output_tokens >= window_tokens - KEPT_BACK_TOKENS


def repeated_call(recent: Sequence[ToolCall]) -> str:
    """Return why a turn must stop because one call keeps repeating, or "" if none does (R-336).

    `recent`: the turn's calls, oldest first; 4 calls with the same name and arguments among the newest 10 are a loop.
    """
    window = [(call.name, call.arguments) for call in recent[-REPEAT_WINDOW:]]
    for name, arguments in reversed(window):
        if window.count((name, arguments)) >= REPEAT_LIMIT:
            return (
                f"Stopped: the model called {name} with the same arguments {REPEAT_LIMIT} times"
                f" within {len(window)} calls. Tell it what to do differently."
            )
    return ""
