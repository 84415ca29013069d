"""S12 `summarize_raw`: when no model wrote the summary, the transcript itself, cut to the summary's size (R-434).

Needs no call and does not fail: what left the view is at least named. What the user said is cut last.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.strategy_parameters import SummarizeOne, SummarizeRaw
from codecompanion.context.summary.summarize_one import summary_budget
from codecompanion.context.transcript.format_transcript import is_spoken
from codecompanion.context.transcript.size import fit_entries
from codecompanion.context.work import Env, Outcome, Skipped, Work

LABEL = "Dropped context (raw, truncated):\n"
_CHARS_PER_TOKEN = 4


def summarize_raw(work: Work, params: SummarizeRaw, env: Env) -> Outcome:
    """Return the work with the shortened transcript as its summary."""
    if not work.transcript:
        return Skipped("nothing_to_summarise", "there is nothing to summarise yet")
    formula = SummarizeOne(
        max_tokens=params.max_tokens,
        min_tokens=params.min_tokens,
        share_of_available=params.share_of_available,
    )
    removed = env.size(work.removed)
    budget = max(1, min(summary_budget(work, formula, env), int(removed * params.share_of_removed)))
    spoken = [is_spoken(entry) for entry in work.transcript]
    chars = budget * _CHARS_PER_TOKEN
    text = _shortened(work.transcript, spoken, chars)
    while env.count_text(text) > budget and chars > len(LABEL):
        chars = chars * 9 // 10
        text = _shortened(work.transcript, spoken, chars)
    said = work.saying(summary_budget_tokens=budget, written_by="code")
    return msgspec.structs.replace(said, summary=text)


def _shortened(transcript: tuple[str, ...], spoken: list[bool], chars: int) -> str:
    return LABEL + "\n".join(fit_entries(transcript, spoken, max(0, chars - len(LABEL) + 1)))
