"""Where the user's words stand in a summary: read, taken out, put in; in their section, or below the text (R-431)."""

from __future__ import annotations

from codecompanion.context.summary_text.quote_lines import Quotes, parse_quotes
from codecompanion.context.summary_text.sections import Schema, guess_schema, parse_sections, replace_section
from codecompanion.formats.regex import regex
from codecompanion.placeholders import LEDGER_HEADING, QUOTES_HEADING, RAW_HEADING, REQUEST_HEADING, split_notes

_CLOSING_TAG = regex(r"\n</\w+>\s*\Z")


def read_quotes(summary: str) -> Quotes:
    """Return the quotes of a summary's text; where a model wrote the list, its lines count as excerpts."""
    return parse_quotes(take_quotes(_CLOSING_TAG.sub("", summary))[1].split("\n"))


def take_quotes(summary: str) -> tuple[str, str]:
    """Return the summary without the user's messages, and the lines that tell them, "" when there are none.

    They are where the form has them: in its section, whose heading stays, or below the text.
    """
    section = section_of_quotes(summary)
    if section is None:
        return _take_below(summary)
    schema, number = section
    parts = parse_sections(summary, schema).parts
    body = next((part.body.strip("\n") for part in parts if part.number == number), "")
    return (replace_section(summary, schema, number, "") if body else summary), body


def _take_below(summary: str) -> tuple[str, str]:
    """Return the summary without the messages below its text, and their lines."""
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
    """Return the summary with the block as its section of user messages, below the text when it has no such section.

    It replaces what stands there, be it a model's copy of an earlier list.
    """
    summary, _ = _take_below(summary)
    section = section_of_quotes(summary)
    if section is not None:
        return replace_section(summary, *section, block)
    tail = parse_sections(summary).tail
    text, notes = split_notes(summary[: len(summary) - len(tail)].rstrip("\n"))
    return "\n\n".join(part for part in (text, f"{QUOTES_HEADING}\n{block}", notes, tail) if part)


def section_of_quotes(summary: str) -> tuple[Schema, int] | None:
    """Return the schema a summary is written in and its section of user messages, None when it has none.

    None too where a section about something else has the number.
    """
    schema = guess_schema(summary)
    number = schema.number_of("user_messages") if schema is not None else 0
    if schema is None or not number:
        return None
    titles = [part.title for part in parse_sections(summary, schema).parts if part.number == number]
    return (schema, number) if all(schema.is_called(number, title) for title in titles) else None
