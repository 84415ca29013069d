"""`require_savings` and `require_target`: stop when what was done would not free enough (R-524)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from codecompanion.context.work import Env, Outcome, Skipped, Work


class RequireSavings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters: least savings in tokens, for an automatic and for a manual compaction.

    Of an automatic one never more than `window_share` (0..1) of the window is asked: a small window has not so much to
    free, and the chat would walk past its end.
    """

    automatic: int = 10000
    manual: int = 0
    window_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.2


def require_savings(work: Work, params: RequireSavings, env: Env) -> Outcome:
    """Return the work, or `Skipped` when count(before) − count(retained) is below the minimum.

    What is retained includes pending user messages; the summary itself is not known yet.
    """
    least = params.manual if env.manual else min(params.automatic, int(params.window_share * env.window))
    before = env.measure(work.before).tokens
    savings = before - env.measure((*work.messages, *work.pending)).tokens
    if savings < least:
        return Skipped("savings_too_small", f"compacting would free {savings:,} tokens, the minimum is {least:,}")
    return work


class RequireTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters: the target is the stage's."""


def require_target(work: Work, params: RequireTarget, env: Env) -> Outcome:
    """Return the work, or `Skipped` when the request is still larger than the stage's target."""
    size = env.measure(work.messages).tokens
    if env.target and size > env.target:
        return Skipped("target_not_reached", f"{size} tokens would be left, more than the target of {env.target}")
    return work
