"""Finds the sections of a summary for the card that folds them (R-454, R-543); Lua draws the card.

Headings are parsed as leniently as in `context.summary_text.sections`, because a model may also write `7. **Title** –
text`. Text that the plugin added below a summary (quotes, a ledger, the request) does not belong to any section.
"""

from __future__ import annotations

from codecompanion.context.summary_text.sections import Part, guess_schema, lines_and_fences, parse_sections
from codecompanion.formats.regex import regex
from codecompanion.placeholders import LEDGER_HEADING, QUOTES_HEADING, RAW_HEADING, REQUEST_HEADING
from codecompanion.wire.events import SummarySection

OPEN_WITHOUT_SCHEMA = (1, 7, 8, 9)
"""Numbers of the sections that are unfolded if the summary's form is unknown: the request, and the next steps."""
_BELOW = {
    QUOTES_HEADING: ("User messages", False),
    LEDGER_HEADING: ("Ledger", False),
    RAW_HEADING: ("", False),
    REQUEST_HEADING: ("", True),
}
_WHOLE_LINE = (
    regex(r"\#{1,6}\s*(?P<number>\d{1,2})[.)]\s+(?P<title>\S.*)"),
    regex(r"(?P<number>\d{1,2})[.)]\s+\*\*(?P<title>[^*]+)\*\*:?\s*"),
    regex(r"\*\*(?P<number>\d{1,2})[.)]\s+(?P<title>[^*]+)\*\*:?\s*"),
)
_UNNUMBERED = regex(r"\#{2,6}\s+(?P<title>\S.*)")
_NUMBER = regex(r"\d+")


def card_sections(text: str) -> tuple[SummarySection, ...]:
    """Return the sections of a summary in the order of their lines, or () if there are none."""
    schema = guess_schema(text)
    found = parse_sections(text, schema)
    above = text[: len(text) - len(found.tail)]
    known = _of_form(found.preamble, found.parts) if schema else {}
    sections = {**_of_lines(above, known), **known, **_below(found.tail, above.count("\n"))}
    return tuple(sections[line] for line in sorted(sections))


def _of_form(preamble: str, parts: tuple[Part, ...]) -> dict[int, SummarySection]:
    """Return line → section for a summary of a known form; the number is 0 if the heading is unnumbered."""
    line, sections = preamble.count("\n"), {}
    for part in parts:
        written = _NUMBER.match(part.head.lstrip(" \t#*_"))
        number = int(written[0]) if written else 0
        sections[line] = SummarySection(line=line, title=part.title, number=number, open=part.open)
        line += part.text.count("\n")
    return sections


def _of_lines(text: str, known: dict[int, SummarySection]) -> dict[int, SummarySection]:
    """Return line → section for lines that are only a heading, unnumbered or numbered between known sections."""
    sections: dict[int, SummarySection] = {}
    last = 0
    for line, (words, fence) in enumerate(lines_and_fences(text)):
        if line in known:
            last = known[line].number or last
            continue
        numbered = next((match for form in _WHOLE_LINE if (match := form.fullmatch(words.rstrip()))), None)
        heading = None if fence else numbered or (None if known else _UNNUMBERED.fullmatch(words.rstrip()))
        if heading is None:
            continue
        number = int(heading["number"]) if heading is numbered else 0
        above = min((s.number for s in known.values() if s.line > line and s.number), default=number + 1)
        if not number or last < number < above:
            title = heading["title"].replace("*", "").strip(" \t:#")
            sections[line] = SummarySection(line=line, title=title, number=number, open=number in OPEN_WITHOUT_SCHEMA)
            last = number or last
    return sections


def _below(tail: str, first: int) -> dict[int, SummarySection]:
    """Return line → section for the parts that the plugin added below the summary.

    `first` is the line where they begin.
    """
    return {
        first + line: SummarySection(
            line=first + line, title=_BELOW[words][0] or words.rstrip(":"), number=0, open=_BELOW[words][1]
        )
        for line, words in enumerate(tail.split("\n"))
        if words in _BELOW
    }
