"""What a preparation would come to, without asking a model or changing anything."""

from __future__ import annotations

from codecompanion.context.report import Ask, Preparation, Prepared
from codecompanion.context.work import SummaryReply

UNWRITTEN = "(the summary is written when it is needed)"


def dry_run(preparation: Preparation) -> Prepared:
    """Return what a preparation would give; every summary it asks for is a placeholder."""
    return dry_run_and_asks(preparation)[0]


def dry_run_and_asks(preparation: Preparation) -> tuple[Prepared, list[Ask]]:
    """Return what a preparation would give, and what it would ask a model for."""
    asks: list[Ask] = []
    try:
        ask = next(preparation)
        while True:
            asks.append(ask)
            ask = preparation.send(SummaryReply(text=UNWRITTEN, source="caller"))
    except StopIteration as stop:
        prepared: Prepared = stop.value
        return prepared, asks
