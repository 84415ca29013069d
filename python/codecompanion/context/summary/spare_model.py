"""Small windows: a model is asked once for a summary, and only where that can pay (ours; off under `strict`).

Reading the chat and writing the summary takes time or money. Once the summary is there, each later request is smaller
by what was freed, until the window is full again: at 2,048 tokens that is less than the summary took. Where it cannot
pay, and where the one answer was no summary, code writes it from the log, at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from codecompanion.context.work import Env, Failed, SummaryRequest, Work

NOT_WORTH_IT = Failed("in a window this small a summary by a model takes more tokens than it can save")


def costs_more_than_it_saves(work: Work, requests: Iterable[SummaryRequest], written: int, env: Env) -> bool:
    """Return whether the requests take more tokens than all later requests can save until the window is full again.

    `written` tokens is the summary in the end; several parts are read once more to be put together. The window fills as
    fast as it did: by what a reply and the messages before it took of what is removed.
    """
    asked = tuple(requests)
    cost = sum(request.prompt_tokens + request.max_output_tokens for request in asked)
    if len(asked) > 1:
        cost += asked[0].prompt_tokens // 2 + sum(request.max_output_tokens for request in asked) + written
    left = env.measure((*work.messages, *work.pending)).tokens
    freed = max(0, env.measure(work.before).tokens - left - written)
    replies = sum(message.role == "assistant" for message in work.removed)
    rounds = freed * max(1, replies) / max(1, env.size(work.removed))
    return cost > freed * rounds
