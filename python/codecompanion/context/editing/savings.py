"""`require_savings` and `require_target`: stop if the edits so far would not free enough (R-524)."""

from __future__ import annotations

from codecompanion.context.strategy_parameters import RequireSavings, RequireTarget
from codecompanion.context.work import Env, Outcome, Skipped, Work


def require_savings(work: Work, params: RequireSavings, env: Env) -> Outcome:
    """Return the work, or `Skipped` if count(before) − count(retained) is below the minimum.

    The retained part includes pending user messages; the summary is not known yet.
    """
    least = params.manual if env.manual else min(params.automatic, int(params.window_share * env.window))
    before = env.measure(work.before).tokens
    savings = before - env.measure((*work.messages, *work.pending)).tokens
    if savings < least:
        return Skipped("savings_too_small", f"compacting would free {savings:,} tokens; the minimum is {least:,}")
    return work


def require_target(work: Work, params: RequireTarget, env: Env) -> Outcome:
    """Return the work, or `Skipped` if the request is still larger than the stage's target."""
    size = env.measure(work.messages).tokens
    if env.target and size > env.target:
        return Skipped("target_not_reached", f"{size} tokens would be left, more than the target of {env.target}")
    return work
