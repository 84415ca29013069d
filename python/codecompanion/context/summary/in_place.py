"""Asks for a summary within the chat if that costs less than a transcript (ours; off under `strict`).

The provider has the chat in its prompt cache. An instruction appended to it costs the cached price of the chat; a
transcript in a separate request costs the full price of its content, and a local server has to read it from the start.
So the instruction is appended to the chat as it would be sent now, with its system prompt and its tools, whenever that
fits and is cheaper, and the chat's own model writes the summary. If the reply is not a summary, a transcript request
follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import takewhile

from codecompanion import prompts
from codecompanion.context.selection.select_window import first_pending
from codecompanion.context.work import Continuation, Env, SummaryRequest, Work

TRANSCRIPT_PRICE = 1.0
"""Price per token of a separate request, which is read only once, so that caching it costs nothing."""
MIN_SAVED = 1_000
"""Minimum savings in tokens of plain input; for less, the risk that the model continues its task is too high."""
MIN_OUTPUT_SHARE = 0.5
"""Minimum share of the summary's budget that the window must leave; most summaries are shorter than allowed."""
MIN_OUTPUT_TOKENS = 400
"""Number of tokens that is enough for the summary if a local server has the chat in its cache, so that reading is free.
"""


def in_place(request: SummaryRequest, order: Callable[[int], str], work: Work, env: Env) -> SummaryRequest | None:
    """Return the request for the same summary in the chat itself, or None if a transcript is better or the only way.

    `order` returns the instructions for a summary of at most this many tokens.
    """
    if env.continuation is None or env.cache.is_cold or request.parts > 1:
        return None
    chat, output = env.continuation(), request.max_output_tokens
    prompt, tokens = _instructions(order(output), work, env)
    room = env.window - chat.tokens - tokens
    enough = MIN_OUTPUT_SHARE * output
    if room < (enough if env.cache.read_price else min(enough, MIN_OUTPUT_TOKENS)):
        return None
    transcript = TRANSCRIPT_PRICE * request.prompt_tokens * env.summariser_ratio
    if transcript - price_of(chat, tokens, env) < MIN_SAVED:
        return None
    if room < output:
        prompt, _ = _instructions(order(room), work, env)
    return SummaryRequest(
        prompt=prompt,
        subject=request.subject,
        max_output_tokens=min(output, room),
        room_tokens=room,
        prompt_tokens=chat.tokens + tokens,
        unread_tokens=min(chat.new, chat.tokens) + tokens,
        in_place=True,
    )


def _instructions(order: str, work: Work, env: Env) -> tuple[str, int]:
    """Return the message that asks for the summary, and its token count."""
    prompt = prompts.load("summary_in_place").format(order=order)
    if kept := _newest_kept(work):
        prompt += "\n\n" + prompts.load("summary_in_place_kept").format(count=kept)
    return prompt, math.ceil(env.count_text(prompt) * env.summariser_ratio)


def _newest_kept(work: Work) -> int:
    """Return the number of newest messages that stay, without pending ones, which were never sent."""
    removed = {message.id for message in work.removed}
    answered = work.before[: first_pending(work.before)]
    return sum(1 for _ in takewhile(lambda message: message.id not in removed, reversed(answered)))


def price_of(chat: Continuation, order_tokens: int, env: Env) -> float:
    """Return the price of reading the chat and the instructions, in tokens of plain input."""
    new = min(chat.new, chat.tokens)
    return env.cache.read_price * (chat.tokens - new) + env.cache.write_price * (new + order_tokens)
