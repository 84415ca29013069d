"""Recovers a summary as written, without the additions by code below it: the user's words, the ledger, the request."""

from __future__ import annotations

from codecompanion.context.summary_text.place_quotes import take_quotes
from codecompanion.placeholders import LEDGER_HEADING, REQUEST_HEADING


def as_written(summary: str) -> str:
    """Return the summary without additions; if its form has a section for the user's words, that section is emptied."""
    text, _ = take_quotes(summary)
    for heading in (REQUEST_HEADING, LEDGER_HEADING):
        text = f"\n\n{text}".partition(f"\n\n{heading}")[0].removeprefix("\n\n")
    return text
