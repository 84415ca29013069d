"""Context windows: who knows how large a model's window is, and in which order they are asked (K4, R-506).

The table itself (genai-prices) is an edge (`adapters/catalog.py`) and arrives as a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

WindowSource = Literal["user", "adapter", "endpoint", "table", "default"]


class ModelLimits(msgspec.Struct, frozen=True):
    """What is known of a model; 0 = unknown. Both in tokens."""

    context_window: int = 0
    max_output_tokens: int = 0


class ResolvedLimits(msgspec.Struct, frozen=True):
    """The limits in force. `source` says who gave the window; `default` is a fall-back the user is told of (R-506)."""

    context_window: int
    max_output_tokens: int
    source: WindowSource


def resolve_limits(
    model: str,
    *,
    user_table: Mapping[str, ModelLimits],
    adapter_limits: ModelLimits,
    endpoint_limits: ModelLimits,
    lookup: Callable[[str], ModelLimits | None],
    default_window: int,
) -> ResolvedLimits:
    """Return the limits of a model: user > adapter > what the endpoint says > table > the policy's default (K4).

    `max_output_tokens` is what a request reserves for the reply (R-507): only what was configured, never a guess.
    """
    user = user_table.get(model, ModelLimits())
    reserved = user.max_output_tokens or adapter_limits.max_output_tokens
    if user.context_window:
        return ResolvedLimits(user.context_window, reserved, "user")
    if adapter_limits.context_window:
        return ResolvedLimits(adapter_limits.context_window, reserved, "adapter")
    if endpoint_limits.context_window:
        return ResolvedLimits(endpoint_limits.context_window, reserved, "endpoint")
    known = lookup(model)
    if known is not None and known.context_window:
        return ResolvedLimits(known.context_window, reserved, "table")
    return ResolvedLimits(default_window, reserved, "default")
