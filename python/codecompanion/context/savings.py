"""`require_savings`: stop when compacting would not free enough (R-524)."""

from __future__ import annotations

import msgspec

from codecompanion.context.work import Env, Outcome, Skipped, Work


class RequireSavings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters: least savings in tokens, for an automatic and for a manual compaction."""

    automatic: int = 10000
    manual: int = 0


def require_savings(work: Work, params: RequireSavings, env: Env) -> Outcome:
    """Return the work, or `Skipped` when count(before) − count(retained) is below the minimum.

    What is retained includes pending user messages; the summary itself is not known yet.
    """
    least = params.manual if env.manual else params.automatic
    before = env.measure(work.before).tokens
    savings = before - env.measure((*work.messages, *work.pending)).tokens
    if savings < least:
        return Skipped("savings_too_small", f"compacting would free {savings} tokens, fewer than the least of {least}")
    return work
