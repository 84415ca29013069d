"""What went along with the questions of a turn besides code: what they mentioned, what had changed in attached files.

A section of `/trace`; what was only named, because the model had it, says so with what it took.
"""

from __future__ import annotations

from codecompanion.model.messages import Message
from codecompanion.reports.markdown import Page, one_line, table, tokens_text
from codecompanion.reports.record import Stretch


def went_along(turn: Stretch, page: Page) -> list[str]:
    """Return the section; nothing for a turn in which nothing did."""
    if not turn.along:
        return []
    rows = [(tokens_text(message.tokens), one_line(_title(message))) for message in turn.along]
    return ["", "## What went along", "", *table(("tokens", "what"), rows, page.width, "rl")]


def _title(message: Message) -> str:
    if message.mentioned is not None:
        return message.mentioned.title or message.mentioned.written
    return f"{message.path} · what has changed in it"
