"""The folds of a compaction card: each section of the summary under its own title only."""

from __future__ import annotations

import pytest

from codecompanion.context.summary_text.sections import load_schema
from codecompanion.placeholders import LEDGER_HEADING, QUOTES_HEADING, REQUEST_HEADING
from codecompanion.session.history.card_sections import card_sections

TITLES = [section.title for section in load_schema("cc_9").section]
FORMS = [
    "{n}. **{title}**\nsome words", "{n}. **{title}** – some words", "{n}. **{title}:** some words",
    "{n}. {title}:\nsome words", "## {n}. {title}\nwords", "{n}) **{title}**: some words",
    "**{n}. {title}**\n1. a list\n2. **of two** points",
]  # fmt: skip


def told(text: str) -> list[tuple[str, int, str, bool]]:
    """Return each section's first line, number, title, and whether it is open."""
    lines = text.split("\n")
    return [(lines[s.line], s.number, s.title, s.open) for s in card_sections(text)]


@pytest.mark.parametrize("form", FORMS)
def test_every_section_is_found_beside_the_generated_one(form: str) -> None:
    """A model continues text after the title: section 6, written by code, used to swallow 7 to 9."""
    parts = [form.format(n=number, title=title) for number, title in enumerate(TITLES, 1)]
    parts[5] = "6. **All User Messages**\n> 7. **not a heading**\n\n- Word for word in the log: recall r4 to r9"
    found = told("\n\n".join(parts))
    assert [(number, title) for _, number, title, _ in found] == list(enumerate(TITLES, 1))
    assert [number for _, number, _, is_open in found if is_open] == [1, 7, 8, 9]


def test_text_that_code_appended_is_a_section_of_its_own() -> None:
    """The request is not part of the ledger, and is open."""
    below = f"{QUOTES_HEADING}\n> hi\n\n{LEDGER_HEADING}\nFiles:\n- a.py\n\n{REQUEST_HEADING}\n\n> go on"
    assert [(title, is_open) for _, _, title, is_open in told(f"Prose.\n\n{below}")] == [
        ("User messages", False), ("Ledger", False), (REQUEST_HEADING.rstrip(":"), True),
    ]  # fmt: skip


def test_in_an_unknown_form_only_heading_lines_are_headings() -> None:
    """Numbers increase; list items and lines in a code fence are not headings."""
    text = "1. **Goal**\n2. **with** words\n```\n## 2. no\n```\n2. **Way**\nx\n1. **Goal**\n\n## Rest"
    assert [found[0] for found in told(text)] == ["1. **Goal**", "2. **Way**", "## Rest"]
    assert card_sections("just prose") == card_sections("") == ()
