"""Context windows: who knows how large a model's window is, and in which order they are asked (K4, R-101, R-506).

The large table (genai-prices) is an edge (`adapters/catalog.py`) and arrives as a function. Of the small one here, the
documented figures go before it, because it rounds (R-106); the others stand in where it knows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from codecompanion.formats.regex import regex

WindowSource = Literal["user", "adapter", "endpoint", "table", "default"]


REPLY_SHARE, MAX_REPLY_TOKENS = 0.05, 4096
"""What is kept free for a reply whose length nobody has configured: that share of the window, at most so many tokens.

The share is CoWork's (R-403): the latest trigger of any document, so that all of them stay where they are.
"""
MAX_RESERVED_SHARE = 0.5
"""A configured length is the most that is asked for, no promise: in a window not much larger nothing could be sent."""


class ModelLimits(msgspec.Struct, frozen=True):
    """What is known of a model; 0 = unknown. Both in tokens."""

    context_window: int = 0
    max_output_tokens: int = 0


class ResolvedLimits(msgspec.Struct, frozen=True):
    """The limits in force. `source` says who gave the window; `default` is a fall-back the user is told of (R-506).

    `max_output_tokens` is what a request asks for at most, 0 = it leaves that to the provider.
    """

    context_window: int
    max_output_tokens: int
    source: WindowSource

    @property
    def reply_reserve(self) -> int:
        """Return what is kept free of the window for the reply (R-507)."""
        return reply_reserve(self.context_window, self.max_output_tokens)

    @property
    def prompt_tokens(self) -> int:
        """Return how large a request may be beside its reply."""
        return self.context_window - self.reply_reserve


def reply_reserve(window: int, max_output_tokens: int = 0) -> int:
    """Return how much of a window is kept free for the reply, in tokens (R-507, R-107, lesson 2).

    The configured length of a reply, 0 = nobody has said one.
    """
    if not max_output_tokens:
        return min(MAX_REPLY_TOKENS, int(REPLY_SHARE * window))
    return min(max_output_tokens, int(MAX_RESERVED_SHARE * window))


def resolve_limits(
    model: str,
    *,
    chosen_window: int,
    user_table: Mapping[str, ModelLimits],
    adapter_limits: ModelLimits,
    endpoint_limits: ModelLimits,
    lookup: Callable[[str], ModelLimits | None],
    default_window: int,
) -> ResolvedLimits:
    """Return the limits of a model: user > adapter > what the endpoint says > table > the policy's default (K4).

    `chosen_window` is the user's one window for every model, 0 = none (R-101, R-103). `max_output_tokens` is what a
    request asks for: only what was configured, never a guess.
    """
    user = user_table.get(model, ModelLimits())
    reserved = user.max_output_tokens or adapter_limits.max_output_tokens
    if chosen_window or user.context_window:
        return ResolvedLimits(chosen_window or user.context_window, reserved, "user")
    if adapter_limits.context_window:
        return ResolvedLimits(adapter_limits.context_window, reserved, "adapter")
    if endpoint_limits.context_window:
        return ResolvedLimits(endpoint_limits.context_window, reserved, "endpoint")
    known = lookup(model)
    if known is not None and known.context_window:
        return ResolvedLimits(known.context_window, reserved, "table")
    return ResolvedLimits(default_window, reserved, "default")


EXACT_WINDOWS = {
    "claude-3-opus": 200_000,
    "claude-3-haiku": 200_000,
    "gpt-4-turbo": 128_000,
    "gpt-4": 8_192,
    "o1-mini": 128_000,
    "llama-3.1-70b-versatile": 128_000,
    "mixtral-8x7b-32768": 32_768,
    "gemini-1.5-flash": 1_048_576,
    "deepseek-coder": 64_000,
    "qwen-turbo": 131_072,
}
"""R-105: these very names."""
FAMILY_WINDOWS = {
    "claude-3-5": 200_000,
    "claude-3.5": 200_000,
    "claude-4": 200_000,
    "claude-opus-4": 200_000,
    "claude-sonnet-4": 200_000,
    "claude-haiku-4": 200_000,
    "gpt-4o": 128_000,
    "o1": 200_000,
    "gemini-2.0": 1_048_576,
    "gemini-1.5-pro": 2_097_152,
    "llama-3.3-70b": 128_000,
    "deepseek-chat": 64_000,
    "qwen-plus": 131_072,
    "glm-4-plus": 128_000,
}
"""R-104: names that begin so."""
FALLBACK_WINDOWS = {"claude": 200_000, "gpt-3.5-turbo": 16_000}
"""R-406: names that begin so, where nobody knows better."""
_NAMED_SIZE = regex(r"(?<![a-z0-9.])([1-9]\d{0,3})k(?![a-z0-9])")
_DATE = regex(r"(?:-20\d{6}|-\d{4}-\d{2}-\d{2})$")
_LATER_VERSION = regex(r"[-.][1-9](?![0-9])")


def documented_window(model: str) -> int:
    """Return the window the documents name for a model (R-104, R-105), 0 when they do not name it (R-106).

    `provider/` and a date at the end do not count; the exact name goes before the longest family. A family's name ends
    where a word ends: `o1` is not the beginning of `o100`. A later version of a family (`claude-opus-4-6`) has a window
    of its own.
    """
    name = _bare_name(model)
    if name in EXACT_WINDOWS:
        return EXACT_WINDOWS[name]
    family = _longest_beginning(name, FAMILY_WINDOWS)
    return 0 if not family or _LATER_VERSION.match(name, len(family)) else FAMILY_WINDOWS[family]


def find_window(model: str) -> int:
    """Return the window of a well-known model or family, 0 when it is none.

    Besides the documented ones that is any version of a family, and a name that says its window itself: `…-32k`
    (R-406).
    """
    name = _bare_name(model)
    if documented := documented_window(model):
        return documented
    families = FALLBACK_WINDOWS | FAMILY_WINDOWS
    if family := _longest_beginning(name, families):
        return families[family]
    said = _NAMED_SIZE.search(name)
    return int(said[1]) * 1000 if said else 0


def _bare_name(model: str) -> str:
    return _DATE.sub("", model.rpartition("/")[2].lower())


def _longest_beginning(name: str, families: Mapping[str, int]) -> str:
    found = [family for family in families if re.match(rf"{re.escape(family)}(?![a-z0-9])", name)]
    return max(found, key=len, default="")
