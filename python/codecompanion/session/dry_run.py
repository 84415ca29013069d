"""What a preparation would come to, without asking a model or changing anything."""

from __future__ import annotations

from codecompanion.context.pipeline import Preparation, Prepared
from codecompanion.context.work import SummaryReply

UNWRITTEN = "(the summary is written when it is needed)"


def dry_run(preparation: Preparation) -> Prepared:
    """Return what a preparation would give; every summary it asks for is a placeholder."""
    try:
        next(preparation)
        while True:
            preparation.send(SummaryReply(text=UNWRITTEN, source="caller"))
    except StopIteration as stop:
        prepared: Prepared = stop.value
        return prepared
