"""Replies of summarisers that count as summaries (R-526): nine sections, or short ones."""

from __future__ import annotations

from codecompanion.context.summary_text.sections import load_schema


def nine_sections(text: str, schema: str = "cc_9") -> str:
    """Return a summary whose first section is `text`."""
    form = load_schema(schema)
    bodies = [text, "What the conversation is about.", *["None"] * 7]
    return "\n\n".join(f"{form.heading(number)}\n{body}" for number, body in enumerate(bodies, 1))


def five_lines(text: str) -> str:
    """Return the shortest valid summary: the first five of the nine sections, one line each."""
    form = load_schema("cc_9")
    bodies = (text, "What the conversation is about.", "None", "None", "None")
    return "\n".join(f"{form.heading(number)} {body}" for number, body in enumerate(bodies, 1))
