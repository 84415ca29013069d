"""Writes the section of `/trace` on a turn's attachments besides code: mentions, and changes to attached files.

A reference to text that the model already had is labelled as one, with its size.
"""

from __future__ import annotations

from codecompanion.model.messages import Message
from codecompanion.reports.markdown import Page, one_line, table, tokens_text
from codecompanion.reports.record import Stretch


def attachments_section(turn: Stretch, page: Page) -> list[str]:
    """Return the lines of the section; none for a turn without attachments."""
    if not turn.along:
        return []
    rows = [(tokens_text(message.tokens), one_line(_title(message))) for message in turn.along]
    return ["", "## Attachments", "", *table(("tokens", "what"), rows, page.width, "rl")]


def _title(message: Message) -> str:
    if message.mentioned is not None:
        return message.mentioned.title or message.mentioned.written
    return f"{message.path} · changes"
