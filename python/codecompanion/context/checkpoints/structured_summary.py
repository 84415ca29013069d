"""Parses the structured summary of a checkpoint from the text of a summary (R-471).

The text has either the four labelled lists that a memory flush asks for, or the nine numbered sections of a compaction:
section 6 contains decisions, 7 open loops, 9 next actions, 4 and 5 key findings. The beginning of any other text
becomes a single key finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codecompanion.context.summary_text.recall_keys import without_keys
from codecompanion.formats.regex import regex
from codecompanion.model.checkpoint import StructuredSummary, SummarySource
from codecompanion.placeholders import NO_ROOM, QUOTES_HEADING

FALLBACK_CHARS = 400
_LABEL = regex(
    r"^\s*(?:#{1,6}\s*)?(?:\*\*)?(decisions|open loops|next actions|key findings)(?:\*\*)?\s*:?(?:\*\*)?\s*$",
    re.IGNORECASE,
)
_FIELDS = {
    "decisions": "decisions",
    "open loops": "open_loops",
    "next actions": "next_actions",
    "key findings": "key_findings",
}
_HEADING = regex(r"^\s*(#{1,6}\s*)?(?:\*\*)?(?:([1-9])[.)]\s*)?(?:\*\*)?\s*(\S.*?)\s*(?:\*\*)?:?\s*$")
_TITLES = (
    "primary",
    "user messages",
    "work",
    "errors",
    "key technical",
    "decisions",
    "pending",
    "current",
    "recommended",
)
_SECTION_FIELDS = {4: "key_findings", 5: "key_findings", 6: "decisions", 7: "open_loops", 9: "next_actions"}
_BULLET = regex(r"^\s*(?:[-*•]|\d+[.)])\s+(.*\S)\s*$")
_NOTHING = regex(r"^\W*(?:none|n/a|nothing|keine?)\b[^a-z]*$", re.IGNORECASE)


def parse_summary(text: str, source: SummarySource) -> StructuredSummary:
    """Return the lists of the summary; deterministic, never fails."""
    found: dict[str, list[str]] = {}
    # The user's words, which code quotes at the end of a summary without sections, belong to no list.
    said = without_keys(text.partition(f"\n{QUOTES_HEADING}\n")[0])
    for name, item in _labelled(said) if any(_LABEL.match(line) for line in said.splitlines()) else _numbered(said):
        if item != NO_ROOM and not _NOTHING.match(item) and item not in found.setdefault(name, []):
            found[name].append(item)
    lists = {name: tuple(items) for name, items in found.items() if items}
    if not lists and text.strip():
        lists = {"key_findings": (text.strip()[:FALLBACK_CHARS],)}
    return StructuredSummary(source=source, raw_text=text, **lists)


def _labelled(text: str) -> Iterator[tuple[str, str]]:
    """Yield (list, bullet) for labels such as `Decisions:`."""
    name = ""
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label:
            name = _FIELDS[label[1].lower()]
        elif _heading(line):
            name = ""
        elif name and (bullet := _BULLET.match(line)):
            yield name, bullet[1]


def _numbered(text: str) -> Iterator[tuple[str, str]]:
    """Yield (list, item) for each section that maps to a list; a paragraph without bullets is one item."""
    name = ""
    for line in text.splitlines():
        heading = _heading(line)
        if heading:
            name = _SECTION_FIELDS.get(heading, "")
        elif name and line.strip():
            bullet = _BULLET.match(line)
            yield name, bullet[1] if bullet else line.strip()


def _heading(line: str) -> int:
    """Return the number of the section that the line opens, or 0; a number without a title is a list item."""
    match = _HEADING.match(line)
    if not match or not (match[1] or match[2]):
        return 0
    title = match[3].strip("* ").lower()
    number = next((place for place, word in enumerate(_TITLES, 1) if title.startswith(word)), 0)
    return number if not match[2] or int(match[2]) == number else 0
