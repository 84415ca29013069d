"""The packet of workspace facts: R-350…R-355."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.context.shaping.context_packet import (
    SECTIONS,
    ChangedFile,
    DiagnosticFact,
    Facts,
    budget_tokens,
    plan_packet,
    section_text,
)
from codecompanion.context.strategy_parameters import ContextPacket
from tests.unit.context.builders import chars4

CHANGED = (ChangedFile("M", "README.md"), ChangedFile("??", "docs/skills.mdx"))
FACTS = Facts("kodacode", True, "docs-refresh", CHANGED)
GIT = ("repo", "git", "git_dirty_summary")


def plan(enabled=GIT, facts=FACTS, words="hello", sent=None, budget=2000):
    return plan_packet(enabled, facts, words, sent or {}, budget=budget, count=chars4)


def test_each_section_has_its_lines():
    """R-351: the lines are exact; the counts of changed files come before the list."""
    assert section_text("repo", FACTS) == "name: kodacode\ngit: detected"
    assert section_text("git", FACTS) == "branch: docs-refresh\nchanged_files: 2"
    assert section_text("git_dirty_summary", FACTS) == (
        "total_changed_files: 2\nlisted_changed_files: 2\nfiles:\n- M README.md\n- ?? docs/skills.mdx"
    )


def test_missing_facts_are_omitted():
    """R-351: a missing root name, git, branch or change adds no line."""
    assert section_text("repo", Facts()) == "name: workspace\ngit: not_detected"
    assert section_text("git", Facts("x")) == ""
    assert section_text("git", Facts("x", True)) == "changed_files: 0"
    assert section_text("git_dirty_summary", Facts("x", True)) == ""
    assert section_text("diagnostics", Facts("x", True)) == ""


def test_long_lists_are_limited():
    """R-351, R-355: at most 20 changed files; 3 files and 8 diagnostics with messages of up to 160 characters."""
    many = Facts("x", True, "", tuple(ChangedFile("M", f"{i}.py") for i in range(25)))
    lines = section_text("git_dirty_summary", many).splitlines()
    assert lines[:4] == ["total_changed_files: 25", "listed_changed_files: 20", "omitted_changed_files: 5", "files:"]
    assert len(lines) == 24
    found = tuple(DiagnosticFact(f"{i % 5}.py", i, "ERROR", "m" * 500) for i in range(40))
    shown = [line for line in section_text("diagnostics", Facts(diagnostics=found)).splitlines() if line[0] == "-"]
    assert len(shown) == 8
    assert {line[2:].split(":")[0] for line in shown} == {"0.py", "1.py", "2.py"}
    assert all(line.count("m") == 160 for line in shown)


@given(st.text(), st.text())
def test_a_name_cannot_leave_its_line_or_its_element(name, path):
    """R-355: paths come from an untrusted repository."""
    text = plan(facts=Facts(name, True, name, (ChangedFile("M", path),))).text
    assert text.count("</section>") == 3
    assert text.count("</deterministic_context_packet>") == 1
    assert len(text.splitlines()) == len(text.split("\n"))


def test_the_wrapper_names_every_section():
    """R-352: the order is fixed, whatever the order in the configuration."""
    packet = plan(("git", "repo"))
    assert packet.text == (
        '<deterministic_context_packet>\n<section key="repo" label="Repository" source="workspace"'
        ' freshness="turn_start">\nname: kodacode\ngit: detected\n</section>\n'
        '<section key="git" label="Git" source="git"'
        ' freshness="turn_start">\nbranch: docs-refresh\nchanged_files: 2\n</section>\n</deterministic_context_packet>'
    )
    assert packet.tokens == chars4(packet.text)
    assert tuple(SECTIONS) == (*GIT, "diagnostics")


@pytest.mark.parametrize(("limit", "expected"), [(0, 0), (10, 1), (8_000, 400), (40_000, 2000), (200_000, 2000)])
def test_the_budget_is_a_twentieth_of_the_limit(limit, expected):
    """R-352: the budget is min(max(limit / 20, 1), 2000) tokens; if the limit is unknown, there is no packet."""
    assert budget_tokens(ContextPacket(), limit) == expected
    assert (plan(budget=budget_tokens(ContextPacket(), limit)).text != "") == (limit >= 8_000)


def test_a_section_that_is_too_large_makes_room_for_a_smaller_one():
    """R-352: the section is recorded with the reason; later, smaller ones may still fit."""
    large = Facts("x", True, "b" * 200, (ChangedFile("M", "a"),))
    whole = plan(("repo", "git_dirty_summary"), large)
    packet = plan(GIT, large, budget=whole.tokens)
    assert list(packet.sections) == ["repo", "git_dirty_summary"]
    assert packet.omitted == (("git", "token_budget"),)


def test_later_turns_send_changed_or_requested_sections():
    """R-353: the first turn sends everything; later turns send only changed sections, or those the user asks about."""
    first = plan()
    assert list(first.sections) == list(GIT)
    assert plan(sent=first.sections).text == ""
    assert dict(plan(sent=first.sections).omitted) == dict.fromkeys(GIT, "unchanged")
    asked = plan(sent=first.sections, words="what is the git status?")
    assert list(asked.sections) == ["git", "git_dirty_summary"]
    moved = Facts("kodacode", True, "main", CHANGED)
    assert list(plan(facts=moved, sent=first.sections).sections) == ["git"]


def test_diagnostics_are_sent_only_if_the_message_is_about_them():
    """R-351, R-353: this applies to the first turn, too."""
    facts = Facts("x", diagnostics=(DiagnosticFact("a.py", 3, "ERROR", "undefined name"),))
    assert plan(("diagnostics",), facts, "write a poem").omitted == (("diagnostics", "not_asked_for"),)
    text = plan(("diagnostics",), facts, "fix the lint errors").text
    assert "- a.py:3 ERROR: undefined name" in text


def test_by_default_there_is_no_packet():
    """R-350: no section, no packet."""
    assert plan(()).text == ""
