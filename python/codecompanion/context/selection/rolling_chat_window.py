"""S18 `rolling_chat_window`: sends a chat without tools as a cached summary and its newest messages (R-456…R-458).

The live summary is the cache: it is written when the chat has grown long, stays unchanged while a few more messages
arrive, and is rewritten from itself and the messages about to leave before any of them is lost. Between rewrites, the
window is slightly longer than configured, so that the prefix in the provider's prompt cache stays valid.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.selection.running_turn import without_calls
from codecompanion.context.selection.select_window import first_pending
from codecompanion.context.strategy_parameters import RollingChatWindow
from codecompanion.context.work import Env, Messages, Outcome, Skipped, Work
from codecompanion.model.invariants import with_partners
from codecompanion.model.messages import (
    EDITOR_TAG,
    GATHERED_TAG,
    LOOKING_TAG,
    STARTING_TAGS,
    SUMMARY_TAG,
    Message,
    is_protected,
    is_system_prompt,
)
from codecompanion.placeholders import without_gathered_code

_MIN = 200
"""Minimum length assumed for a summary, in tokens."""


def rolling_chat_window(work: Work, params: RollingChatWindow, env: Env) -> Outcome:
    """Return the work reduced to the newest messages; `Skipped` while the cached summary is enough.

    A manual run requires only one message outside the window. Tool calls and results of the kept messages are also
    dropped (R-457) and included in the summary; a running loop is left unchanged.
    """
    pending_from = first_pending(work.messages)
    head = work.messages[:pending_from]
    if head and head[-1].role == "tool":
        return Skipped("in_tool_loop", "the model is still using tools; the chat is summarised afterwards")
    said = [index for index, message in enumerate(head) if _says_something(message)]
    slid_out = len(said) - params.window
    if slid_out <= 0 or not (env.manual or _is_due(work.messages, len(said), slid_out, params, env)):
        return Skipped("window_not_full", "the chat is short enough to be sent as it is")
    fixed = frozenset(i for i, message in enumerate(head) if is_protected(message) or message.compacted)
    fixed, newest = with_partners(head, fixed), frozenset(said[slid_out:])
    messages = tuple(
        message if index in fixed else without_calls(message, env)
        for index, message in enumerate(head)
        if index in fixed or index in newest
    )
    removed = tuple(
        message
        for index, message in enumerate(head)
        if index not in fixed and (index not in newest or message.tool_calls)
    )
    if all(message.tag == SUMMARY_TAG for message in removed):
        return Skipped("window_not_full", "the messages outside the window are pinned; there is nothing to summarise")
    is_cached = env.cache.warm_tokens > 0 and env.now > 0 and not env.manual
    if is_cached and env.cache.costs_time and _has_room(work.messages, params, env):
        return Skipped("window_not_full", "the server has the chat in its cache, and the window has room")
    worth = min(params.min_tokens, int(params.min_share * env.window)) if is_cached else 0
    if env.size(removed) < max(worth, _MIN):
        return Skipped("window_not_full", "the messages outside the window are not worth a summary yet")
    told = tuple(map(without_gathered_code, removed))
    return msgspec.structs.replace(work, messages=messages, removed=told, pending=work.messages[pending_from:])


def _is_due(messages: Messages, said: int, slid_out: int, params: RollingChatWindow, env: Env) -> bool:
    """Return whether the summary is due (R-457, R-458)."""
    if any(message.tag == SUMMARY_TAG for message in messages):
        return slid_out >= params.refresh_messages
    return said >= params.trigger_messages or env.measure(messages).tokens >= params.trigger_tokens


def _has_room(messages: Messages, params: RollingChatWindow, env: Env) -> bool:
    """Return whether the chat is too short to give up a free cache: below `min_full` and `trigger_tokens`."""
    return env.measure(messages).tokens < min(params.trigger_tokens, int(params.min_full * env.window))


_SAID_BY_NOBODY = frozenset({GATHERED_TAG, EDITOR_TAG, LOOKING_TAG, *STARTING_TAGS, SUMMARY_TAG})


def _says_something(message: Message) -> bool:
    """Return whether the message is part of the conversation: text or images, from the user or the model."""
    if is_system_prompt(message) or message.role == "tool" or message.tag in _SAID_BY_NOBODY:
        return False
    return bool(message.text or message.images or message.documents)
