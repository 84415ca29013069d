"""Computes the result of a preparation without asking a model or changing anything."""

from __future__ import annotations

from codecompanion.context.stage_report import Ask, Preparation, Prepared, drive
from codecompanion.context.work import SummaryReply

UNWRITTEN = "(the summary is written when it is needed)"


def dry_run(preparation: Preparation) -> Prepared:
    """Return the result of a preparation in which every requested summary is a placeholder."""
    return drive(preparation, unwritten)[0]


def unwritten(ask: Ask) -> SummaryReply:
    """Return the placeholder for a summary."""
    return SummaryReply(text=UNWRITTEN, source="caller")
