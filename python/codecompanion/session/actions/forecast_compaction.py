"""What `/compact` would come to now: the figures of the question that is asked before it (R-533).

A dry run of the pipeline. How long a summary written by a model will be nobody knows before; it is guessed from how
much it stands for.
"""

from __future__ import annotations

from typing import Any

from codecompanion.context.stage_report import drive
from codecompanion.model.messages import RULES_TAG
from codecompanion.session.attachments.pins import pinned
from codecompanion.session.compaction.dry_run import unwritten
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.window.context_control import ContextControl

SUMMARY_SHARE = 0.12
"""Summaries of recorded coding chats came to about this share of what they stood for."""
MIN_SUMMARY_TOKENS = 250


def forecast(control: ContextControl, log: ChatLog) -> dict[str, Any]:
    """Return `{before, after, pins, rules, why}`: tokens now and about how many then, and what is kept as it is.

    `after` is 0 when nobody can say: the provider compacts, or nothing would change (`why` says why).
    """
    messages, before = log.view.messages, control.measured().tokens
    kept = {"pins": len(pinned(log.view)), "rules": sum(message.tag == RULES_TAG for message in messages)}
    if control.native.compacts_on_demand:
        return {"before": before, "after": 0, "why": "", **kept}
    prepared, asks = drive(control.plans.compaction(), unwritten)
    # The length of the text that was asked for last; 0: no model writes one.
    longest = asks[-1].request.max_output_tokens if asks else 0
    changed = prepared.changed
    if not changed:
        why = next((report.detail for report in prepared.reports if report.detail), "")
        return {"before": before, "after": 0, "why": why, **kept}
    after = changed[-1].after.tokens
    if longest:
        removed = max(0, changed[0].before.tokens - after)
        after += min(longest, max(MIN_SUMMARY_TOKENS, int(SUMMARY_SHARE * removed)))
    return {"before": before, "after": min(after, before), "why": "", **kept}
