"""Finds, removes and inserts the user's words in a summary, in their section or below the text (R-431)."""

from __future__ import annotations

from codecompanion.context.summary_text.quote_lines import Quotes, parse_quotes
from codecompanion.context.summary_text.sections import Schema, guess_schema, parse_sections, replace_section
from codecompanion.formats.regex import regex
from codecompanion.placeholders import LEDGER_HEADING, QUOTES_HEADING, RAW_HEADING, REQUEST_HEADING, split_notes

_CLOSING_TAG = regex(r"\n</\w+>\s*\Z")


def read_quotes(summary: str) -> Quotes:
    """Return the quotes in a summary's text; the lines of a list written by a model count as excerpts."""
    return parse_quotes(take_quotes(_CLOSING_TAG.sub("", summary))[1].split("\n"))


def take_quotes(summary: str) -> tuple[str, str]:
    """Split the summary into the text without the user's messages, and the lines of these messages ("" for none).

    The messages are in their section, whose heading stays, or below the text, depending on the form.
    """
    section = section_of_quotes(summary)
    if section is None:
        return _take_below(summary)
    schema, number = section
    parts = parse_sections(summary, schema).parts
    body = next((part.body.strip("\n") for part in parts if part.number == number), "")
    return (replace_section(summary, schema, number, "") if body else summary), body


def _take_below(summary: str) -> tuple[str, str]:
    """Split the summary into the text without the messages below it, and their lines."""
    ahead, heading, below = f"\n{summary}".partition(f"\n{QUOTES_HEADING}\n")
    if not heading:
        return summary, ""
    ends = [
        place for end in (LEDGER_HEADING, RAW_HEADING, REQUEST_HEADING) if (place := f"\n{below}".find(f"\n{end}")) >= 0
    ]
    end = min(ends, default=len(below))
    lines, notes = split_notes(below[:end])
    return "\n\n".join(part for part in (ahead[1:].rstrip("\n"), notes, below[end:]) if part), lines.strip("\n")


def put_quotes(summary: str, block: str) -> str:
    """Return the summary with the block as its section of user messages, or below the text if it has no such section.

    The block replaces any existing text there, such as a model's copy of an earlier list.
    """
    summary, _ = _take_below(summary)
    section = section_of_quotes(summary)
    if section is not None:
        return replace_section(summary, *section, block)
    tail = parse_sections(summary).tail
    text, notes = split_notes(summary[: len(summary) - len(tail)].rstrip("\n"))
    return "\n\n".join(part for part in (text, f"{QUOTES_HEADING}\n{block}", notes, tail) if part)


def section_of_quotes(summary: str) -> tuple[Schema, int] | None:
    """Return the summary's schema and the number of its user-messages section, or None.

    Also returns None if the summary uses that number for a section with a different title.
    """
    schema = guess_schema(summary)
    number = schema.number_of("user_messages") if schema is not None else 0
    if schema is None or not number:
        return None
    titles = [part.title for part in parse_sections(summary, schema).parts if part.number == number]
    return (schema, number) if all(schema.is_called(number, title) for title in titles) else None
