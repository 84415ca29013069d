"""When no model is asked for a summary (ours; off under `strict`): it wrote none that can be used, or it cannot pay.

A model that wrote no usable summary, asked again with the reason, writes none the next time either, and somebody waits.
In a small window a model is asked once, and only where that can pay: reading the chat and writing the summary takes
time or money. Once the summary is there, each later request is smaller
by what was freed, until the window is full again: at 2,048 tokens that is less than the summary took. Where it cannot
pay, and where the one answer was no summary, code writes it from the log, at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from codecompanion.context.work import Env, Failed, SummaryRequest, Work

UNUSABLE = "wrote no usable summary"
"""What is said of a model that is not asked again in its chat, after its name."""
NOT_WORTH_IT = Failed("in a window this small a summary by a model takes more tokens than it can save")


def why_not_again(env: Env, *, asks_unusable: bool) -> Failed | None:
    """Return why the model is not asked: it wrote no usable summary before in this chat; None where it is asked."""
    if asks_unusable or not env.unusable_writer:
        return None
    return Failed(f"{env.unusable_writer} {UNUSABLE}")


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
