"""S12 `summarize_raw`: when no model wrote the summary, the transcript itself, cut to the summary's size (R-434).

Needs no call and does not fail: what left the view is at least named. What the user said is cut last.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.summary import SummarizeOne, summary_budget
from codecompanion.context.transcript import is_spoken
from codecompanion.context.transcript_size import fit_entries
from codecompanion.context.work import Env, Outcome, Skipped, Work

LABEL = "Dropped context (raw, truncated):\n"
_CHARS_PER_TOKEN = 4


class SummarizeRaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters: how long the text may be; the same formula as for a summary (R-427)."""

    max_tokens: int = 4096
    min_tokens: int = 500
    share_of_available: float = 0.08
    share_of_slack: float = 0.6


def summarize_raw(work: Work, params: SummarizeRaw, env: Env) -> Outcome:
    """Return the work with the shortened transcript as its summary."""
    if not work.transcript:
        return Skipped("nothing_to_summarise", "there is nothing to summarise yet")
    formula = SummarizeOne(
        max_tokens=params.max_tokens,
        min_tokens=params.min_tokens,
        share_of_available=params.share_of_available,
        share_of_slack=params.share_of_slack,
    )
    budget = summary_budget(work, formula, env)
    spoken = [is_spoken(entry) for entry in work.transcript]
    chars = budget * _CHARS_PER_TOKEN
    text = _shortened(work.transcript, spoken, chars)
    while env.count_text(text) > budget and chars > len(LABEL):
        chars = chars * 9 // 10
        text = _shortened(work.transcript, spoken, chars)
    details = {**work.details, "summary_budget_tokens": budget}
    return msgspec.structs.replace(work, summary=text, details=details)


def _shortened(transcript: tuple[str, ...], spoken: list[bool], chars: int) -> str:
    return LABEL + "\n".join(fit_entries(transcript, spoken, max(0, chars - len(LABEL) + 1)))
