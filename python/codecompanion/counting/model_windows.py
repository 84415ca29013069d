"""Finds a model's context window in a fixed order of sources (K4, R-101, R-506).

The large table (genai-prices) is an edge (`adapters/catalog.py`) and is passed as a function. The documented figures in
this module take precedence over the table, because it rounds (R-106); the other figures here are used for models that
it does not list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from codecompanion.formats.regex import regex

WindowSource = Literal["user", "adapter", "endpoint", "table", "default"]


REPLY_SHARE, MAX_REPLY_TOKENS = 0.05, 4096
"""Default reply reserve, without a configured reply length: this share of the window, up to this many tokens.

The share is CoWork's (R-403), whose trigger is the latest of all documents, so that no trigger has to move."""
MAX_RESERVED_SHARE = 0.5
"""Maximum share of a window to reserve for a configured reply length, which is a maximum and could fill a small
window."""


class ModelLimits(msgspec.Struct, frozen=True):
    """The known limits of a model, in tokens; 0 if unknown."""

    context_window: int = 0
    max_output_tokens: int = 0


class ResolvedLimits(msgspec.Struct, frozen=True):
    """The limits to use. `source`: the source of the window size; the user sees a notice about a `default` (R-506).

    `max_output_tokens`: the maximum that a request asks for, or 0 to leave it to the provider.
    """

    context_window: int
    max_output_tokens: int
    source: WindowSource

    @property
    def reply_reserve(self) -> int:
        """Return the number of tokens in the window to keep free for the reply (R-507)."""
        return reply_reserve(self.context_window, self.max_output_tokens)

    @property
    def prompt_tokens(self) -> int:
        """Return the maximum size of a request without its reply."""
        return self.context_window - self.reply_reserve


def reply_reserve(window: int, max_output_tokens: int = 0) -> int:
    """Return the number of tokens in a window to keep free for the reply (R-507, R-107, lesson 2).

    `max_output_tokens`: the configured length of a reply, or 0 if there is none.
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
    """Return the limits of a model: user > adapter > endpoint's report > table > the policy's default (K4).

    `chosen_window`: the window the user set for all models, or 0 (R-101, R-103). `max_output_tokens` in the result has
    only configured values, never a guess.
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
"""Windows by exact model name (R-105)."""
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
"""Windows by name prefix (R-104)."""
FALLBACK_WINDOWS = {"claude": 200_000, "gpt-3.5-turbo": 16_000}
"""Windows by name prefix (R-406), used if there is no better source."""
_NAMED_SIZE = regex(r"(?<![a-z0-9.])([1-9]\d{0,3})k(?![a-z0-9])")
_DATE = regex(r"(?:-20\d{6}|-\d{4}-\d{2}-\d{2})$")
_LATER_VERSION = regex(r"[-.][1-9](?![0-9])")


def documented_window(model: str) -> int:
    """Return the window that the documents give for a model (R-104, R-105), or 0 when they do not name it (R-106).

    `provider/` and a final date are ignored; the exact name takes precedence over the longest family. A family's name
    ends at a word boundary: `o1` is not a prefix of `o100`. A later version of a family (`claude-opus-4-6`) is not
    covered: its window may differ.
    """
    name = _bare_name(model)
    if name in EXACT_WINDOWS:
        return EXACT_WINDOWS[name]
    family = _longest_beginning(name, FAMILY_WINDOWS)
    return 0 if not family or _LATER_VERSION.match(name, len(family)) else FAMILY_WINDOWS[family]


def find_window(model: str) -> int:
    """Return the window of a well-known model or family, or 0 for an unknown one.

    Besides documented models, this covers any version of a family, and names that contain their window: `…-32k`
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
