"""Summaries in sections: schemas as data, lenient reading, exact rewriting (K17, R-429, R-430, R-454)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.context.summary_text.sections import (
    guess_schema,
    load_schema,
    parse_sections,
    replace_section,
    schema_names,
)
from codecompanion.errors import ConfigError
from codecompanion.placeholders import LEDGER_HEADING, quote_request

CW_9 = load_schema("cw_9")
CC_9 = load_schema("cc_9")


def written(schema, form="{n}. **{title}**", body="body {n}\n"):
    """Return a summary in a schema, with headings in this form."""
    return "\n".join(
        form.format(n=n, title=section.title) + "\n" + body.format(n=n) for n, section in enumerate(schema.section, 1)
    )


def test_the_nine_titles_equal_the_documents():
    """R-429."""
    assert [section.title for section in CW_9.section] == [
        "Primary Request and Intent",
        "User Messages",
        "Work Completed",
        "Errors and Fixes",
        "Key Technical Details",
        "Decisions Made",
        "Pending/Incomplete Work",
        "Current State",
        "Recommended Next Step",
    ]
    assert CW_9.number_of("user_messages") == 2
    assert CC_9.number_of("user_messages") == 6


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_names_each_role_once_and_only_its_own_sections(name):
    """K17: a summary schema is data; its references must exist."""
    schema = load_schema(name)
    numbers = range(1, len(schema.section) + 1)
    assert len({section.role for section in schema.section}) == len(schema.section)
    assert set(schema.open) <= set(numbers)
    assert set(schema.drop_first).isdisjoint(schema.open) or name == "flush"
    assert set(schema.drop_first) <= set(numbers)


def test_an_unknown_schema_is_refused_by_name():
    with pytest.raises(ConfigError, match="nine"):
        load_schema("nine")


@pytest.mark.parametrize(
    "form",
    [
        "{n}. **{title}**",
        "{n}) **{title}**",
        "**{n}. {title}**",
        "## {n}. {title}",
        "## {title}",
        "### **{title}**",
        "{n}. {title}",
        "{n}. {title}:",
        "**{title}:**",
        "{n}. __{title}__:",
    ],
)
@pytest.mark.parametrize("schema", [CC_9, CW_9])
def test_headings_are_parsed_leniently(form, schema):
    """R-430: a heading is `N.` or `N)` or `##`; bold is optional."""
    text = written(schema, form)
    found = parse_sections(text, schema)
    assert [part.number for part in found.parts] == list(range(1, 10))
    assert [found.body(n) for n in range(1, 10)] == [f"body {n}" for n in range(1, 10)]
    assert found.text == text
    assert guess_schema(text) is schema


def test_a_numbered_list_inside_a_section_is_not_a_heading():
    """R-430: leniency must not split a section."""
    text = written(CC_9, body="1. **First** step\n2. **Second** step\n10. **Tenth**\n- Errors and Fixes: none\n")
    found = parse_sections(text, CC_9)
    assert [part.number for part in found.parts] == list(range(1, 10))
    assert "2. **Second** step" in found.body(3)


def test_a_code_fence_contains_no_headings():
    """R-430: quoted Markdown is text."""
    text = written(CC_9, body="```\n4. **Errors and Fixes**\n```\n")
    assert [part.number for part in parse_sections(text, CC_9).parts] == list(range(1, 10))


def test_text_after_a_heading_belongs_to_the_section():
    found = parse_sections("1. **Primary Request and Intent** – make it fast\n2. User Messages: hello\n", CW_9)
    assert found.body(1) == "make it fast"
    assert found.body(2) == "hello"


def test_a_known_title_takes_precedence_over_a_similar_line():
    """A line `Current work:` inside section 1 is not section 8."""
    text = written(CC_9).replace("body 1", "Current work:\nbody 1")
    assert parse_sections(text, CC_9).body(8) == "body 8"


def test_fewer_than_three_headings_are_plain_text():
    """R-454."""
    assert not parse_sections("1. **One**\nx\n2. **Two**\ny").is_sectioned
    assert parse_sections("intro\n1. **One**\nx\n2. **Two**\ny\n3. **Three**\nz").is_sectioned


def test_sections_1_7_8_and_9_are_open():
    """R-454."""
    assert [part.number for part in parse_sections(written(CW_9)).parts if part.open] == [1, 7, 8, 9]


def test_a_ledger_and_the_quoted_request_belong_to_no_section():
    """Text that code puts below the prose is neither rewritten nor shown as part of section 9."""
    text = written(CC_9) + f"\n{LEDGER_HEADING}\n- Files: a.py" + quote_request("9. **Optional Next Step**\nfix it")
    found = parse_sections(text, CC_9)
    assert found.body(9) == "body 9"
    assert found.tail.startswith(LEDGER_HEADING)
    assert found.text == text


@pytest.mark.parametrize("schema", [CC_9, CW_9])
@pytest.mark.parametrize("number", range(1, 10))
@pytest.mark.parametrize("tail", ["", "\n" + LEDGER_HEADING + "\n- x"])
def test_one_section_is_replaced_and_all_others_stay(schema, number, tail):
    text = written(schema) + tail
    changed = parse_sections(replace_section(text, schema, number, "> new\n> lines"), schema)
    assert changed.body(number) == "> new\n> lines"
    assert [changed.body(n) for n in range(1, 10) if n != number] == [f"body {n}" for n in range(1, 10) if n != number]
    assert changed.tail.strip() == tail.strip()


def test_a_missing_section_is_inserted_in_order():
    text = "\n".join(line for line in written(CC_9).split("\n") if "User Messages" not in line and line != "body 6")
    changed = parse_sections(replace_section(text, CC_9, 6, "> hi"), CC_9)
    assert [part.number for part in changed.parts] == list(range(1, 10))
    assert changed.body(6) == "> hi"
    assert changed.body(5) == "body 5"


def test_free_text_gets_the_section_appended():
    assert replace_section("All is well.", CC_9, 6, "> hi") == "All is well.\n\n6. **All User Messages**\n> hi"


LINES = st.lists(
    st.sampled_from(
        ["1. **Primary Request and Intent**", "## 6) All User Messages", "3. x", "> 2. **b**", "```", "None", "",
         "Errors and Fixes:", "7. **Pending Tasks**: a", "\r", LEDGER_HEADING, "  8. Current Work", "**9. Next**"]
    )
    | st.text(max_size=30),
    max_size=25,
)  # fmt: skip


@pytest.mark.sweep
@settings(max_examples=300, deadline=None)
@given(lines=LINES, schema=st.sampled_from([None, CC_9, CW_9, load_schema("flush")]))
def test_the_joined_parts_equal_the_text(lines, schema):
    """Parsing into sections loses nothing, for any content."""
    text = "\n".join(lines)
    found = parse_sections(text, schema)
    assert found.text == text
    numbers = [part.number for part in found.parts]
    assert len(set(numbers)) == len(numbers)


@settings(max_examples=200, deadline=None)
@given(lines=LINES, number=st.integers(1, 9))
def test_a_replaced_section_can_be_parsed_and_replaced_again(lines, number):
    body = "> in the user's words"
    once = replace_section("\n".join(lines), CC_9, number, body)
    twice = replace_section(once, CC_9, number, body)
    assert body in once
    assert twice.count(body) == once.count(body)
