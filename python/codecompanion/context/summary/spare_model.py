"""Decides when code writes a summary from the log instead of a model (ours; off under `strict`).

- The model wrote no usable summary before: asked again, it would probably fail again while the user waits.
- The window is small: a model is then asked once, and only if the summary can save more tokens than it takes. Each
  later request is smaller by the freed tokens until the window is full again; at 2,048 tokens that is too little, and
  if the user's own server has the chat in its cache, those tokens would have been free.
- The model runs on the user's own server, whose speed is known, and would take longer than the user should wait.
"""

from __future__ import annotations

from collections.abc import Iterable

from codecompanion.context.work import Env, Failed, SummaryRequest, Work

UNUSABLE = "wrote no usable summary"
"""Text after the name of a model that is not asked again in this chat."""
TOO_SLOW = "a summary by the model would take about "
"""Text before the expected time."""
EXPECTED_TOKENS = 700
"""Expected length of a summary in tokens, unless the limit is lower; hosted models wrote 400 to 1,000."""
NOT_WORTH_IT = Failed("in a window this small, a summary takes more tokens than it can save")


def earlier_failure(env: Env, *, asks_unusable: bool) -> Failed | None:
    """Return a failure if the model is not to be asked because of an earlier unusable summary in this chat, or None."""
    if asks_unusable or not env.unusable_writer:
        return None
    return Failed(f"{env.unusable_writer} {UNUSABLE}")


def takes_too_long(requests: Iterable[SummaryRequest], max_wait_s: float, env: Env) -> Failed | None:
    """Return a failure if the requests would take longer than `max_wait_s`; None if not, or if the speed is unknown."""
    if not max_wait_s or env.writer_seconds is None:
        return None
    seconds = 0.0
    for request in requests:
        unread = request.unread_tokens or request.prompt_tokens * env.summariser_ratio
        seconds += env.writer_seconds(round(unread), min(request.max_output_tokens, EXPECTED_TOKENS))
    return Failed(f"{TOO_SLOW}{seconds:,.0f} s") if seconds > max_wait_s else None


def costs_more_than_it_saves(work: Work, requests: Iterable[SummaryRequest], written: int, env: Env) -> bool:
    """Return whether the requests take more tokens than later requests can save before the window is full again.

    `written`: tokens of the final summary; parts are read once more if they have to be merged. The window is assumed to
    fill as fast as before: by the average of the removed messages per reply. On the user's own server, tokens of later
    requests are free while the chat is in its cache, so a transcript for the chat's own model saves nothing.
    """
    if env.cache.costs_time and env.cache.warm_tokens and not env.has_utility:
        return True
    asked = tuple(requests)
    cost = sum(request.prompt_tokens + request.max_output_tokens for request in asked)
    if len(asked) > 1:
        cost += asked[0].prompt_tokens // 2 + sum(request.max_output_tokens for request in asked) + written
    left = env.measure((*work.messages, *work.pending)).tokens
    freed = max(0, env.measure(work.before).tokens - left - written)
    replies = sum(message.role == "assistant" for message in work.removed)
    rounds = freed * max(1, replies) / max(1, env.size(work.removed))
    return cost > freed * rounds
