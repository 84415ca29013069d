"""Builds the sentence about a request that can never fit the window: its largest part, and the remedy.

R-524, R-535. Shown before a request is sent, and when a provider refused a request that cannot be made smaller.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.work import Messages
from codecompanion.model.messages import (
    GATHERED_TAG,
    MEMORY_TAG,
    RULES_TAG,
    Message,
    is_question_context,
    is_typed_by_user,
)
from codecompanion.session.window.chat_model import ChatModel

IS_BACK = "Your message is back in the input."
COMPACT = "Automatic compaction is off: /compact makes room."
NOT_SENT = "Not sent"
"""Start of sentences that stop being true if the message is sent after all."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a message cannot be sent even after compaction, and the size of the request in tokens."""

    why: str
    tokens: int


def too_large(chat: ChatModel, messages: Messages, size: int, room: int, *, is_compacted: bool = False) -> str:
    """Return why a request of `size` tokens is not sent if only `room` tokens fit, both measured by the meter.

    `is_compacted`: `size` is smaller than the meter shows, because it is what compaction would leave.
    """
    what, advice = largest_part(chat, messages)
    left = " after compaction" if is_compacted else ""
    return f"{NOT_SENT}: {size:,} tokens{left}, {room:,} fit; {what}. {advice}"


def too_large_alone(chat: ChatModel, message: Message, room: int) -> str:
    """Return a sentence if no message can be sent with this attachment, else "". `room` 0 = unknown."""
    fixed = chat.meter.by_estimate(()).tokens
    size, left = chat.meter.by_estimate((message,)).tokens - fixed, max(0, room - fixed)
    if not room or size <= left:
        return ""
    fit = f"only {left:,} fit in this window of {chat.limits.context_window:,}"
    return f"Too large to send: {_named(message)} takes {size:,} tokens, but {fit}. Press dd on its line to detach it."


def largest_part(chat: ChatModel, messages: Messages) -> tuple[str, str]:
    """Return the largest part of the request with its token count, and the user's options."""
    fixed = chat.meter.measure(()).tokens
    rules = sum(message.tokens for message in messages if message.tag == RULES_TAG)
    largest = max((m for m in messages if m.tag != RULES_TAG), key=lambda m: m.tokens, default=None)
    if not chat.compacts_automatically and len(messages) > 1:
        return f"the chat takes {size_of(messages):,}", COMPACT
    if fixed > max(rules, largest.tokens if largest else 0):
        return (
            f"system prompt and tools take {fixed:,}",
            "Offer fewer tools (/tools), or choose a model with a larger window (ga).",
        )
    if largest is None or rules > largest.tokens:
        return f"the rules take {rules:,}", "Detach some (/rules), or choose a model with a larger window (ga)."
    return f"{_named(largest)} takes {largest.tokens:,}", _advice(largest)


def can_be_compacted(advice: str) -> bool:
    """Return whether the advice of `largest_part` is to compact."""
    return advice == COMPACT


def size_of(messages: Messages) -> int:
    """Return the estimated token count of the messages."""
    return sum(message.tokens for message in messages)


def _named(message: Message) -> str:
    if is_typed_by_user(message):
        return "your message"
    if message.tag == GATHERED_TAG:
        return "the gathered code"
    if message.mentioned is not None:
        return message.mentioned.written
    kinds = {"tool": "a tool result", "assistant": "a reply"}
    return message.path or kinds.get(message.role, message.tag or "a message")


def _advice(message: Message) -> str:
    if message.pinned and message.tag != MEMORY_TAG:
        return "Unpin it (p in gd), or choose a model with a larger window (ga)."
    if is_question_context(message):
        return "Compact the chat (/compact), or choose a model with a larger window (ga)."
    if message.role == "user" and message.tag:
        return "Detach it (dd on its line), or choose a model with a larger window (ga)."
    return "Shorten it, or choose a model with a larger window (ga)."
