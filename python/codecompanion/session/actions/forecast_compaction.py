"""Forecasts the result of `/compact`, for the figures in its confirmation prompt (R-533).

The forecast is a dry run of the pipeline; the length of a model's summary is estimated from the size of the messages it
replaces.
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
"""Expected size of a summary as a share of the replaced text, from recorded coding chats."""
MIN_SUMMARY_TOKENS = 250
NOT_SMALLER = "a summary would be as long as the messages it replaces"


def forecast(control: ContextControl, log: ChatLog) -> dict[str, Any]:
    """Return `{before, after, pins, rules, why}`: current tokens, estimated tokens afterwards, and the parts that stay.

    `why`: why there is nothing to compact, or "". `after` is 0 if it is unknown: the provider compacts, or
    no message would be replaced.
    """
    messages, before = log.view.messages, control.measured().tokens
    kept = {"pins": len(pinned(log.view)), "rules": sum(message.tag == RULES_TAG for message in messages)}
    if control.native.compacts_on_demand:
        return {"before": before, "after": 0, "why": "", **kept}
    prepared, asks = drive(control.plans.compaction(), unwritten)
    # The maximum length of the last requested summary in tokens, or 0 if no model writes one.
    longest = asks[-1].request.max_output_tokens if asks else 0
    changed = prepared.changed
    if not changed and asks:  # even the placeholder of the summary is too long
        return {"before": before, "after": before, "why": NOT_SMALLER, **kept}
    if not changed:
        why = next((report.detail for report in prepared.reports if report.detail), "")
        return {"before": before, "after": 0, "why": why, **kept}
    after = changed[-1].after.tokens
    if longest:
        removed = max(0, changed[0].before.tokens - after)
        after += min(longest, max(MIN_SUMMARY_TOKENS, int(SUMMARY_SHARE * removed)))
    return {"before": before, "after": min(after, before), "why": NOT_SMALLER if after >= before else "", **kept}
