"""The `@path` mentions in a rule file that count as includes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.rules.parsers import find_includes


def _first(text: str) -> list[str]:
    return [include.spellings[0] for include in find_includes(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@docs/style.md\n@b.md", ["docs/style.md", "b.md"]),
        ("See @README for more, and @~/.claude/own.md", ["README", "~/.claude/own.md"]),
        ("- @a.md\r\n- (@b.md)", ["a.md", "b.md"]),
        ("@a.md twice @a.md", ["a.md"]),
        ("mail me@example.com, `@code`, ``a ` @b``", []),
        ("an unclosed ` and @a.md `` @in.md `` then @b.md", ["a.md", "b.md"]),
        ("```\n@fenced.md\n```\n@after.md", ["after.md"]),
        ("~~~~ lua\n```\n@in.md\n~~~\n@in2.md\n~~~~\n@out.md", ["out.md"]),
        ("```\n@never closed.md", []),
        ("   ```\n@in.md\n   ```  \n@out.md", ["out.md"]),
        ("<!-- @hidden.md\n-->@shown.md", ["shown.md"]),
        ("@/abs/x.md @./rel.md @../up.md", ["/abs/x.md", "./rel.md", "../up.md"]),
        ("@@double.md a/@scope", []),
        ("@.", []),
        ("@ alone", []),
    ],
)
def test_includes_are_found_anywhere_but_in_code_and_comments(text: str, found: list[str]) -> None:
    assert _first(text) == found


def test_a_path_at_the_end_of_a_sentence_is_tried_without_the_full_stop() -> None:
    (include,) = find_includes("Read @docs/a.md.")
    assert include.spellings == ("docs/a.md.", "docs/a.md")
    assert not include.alone


def test_an_include_on_its_own_line_is_recognised_as_such() -> None:
    assert [include.alone for include in find_includes("  @a.md \n- @b.md\nsee @c.md")] == [True, True, False]


@given(st.text(alphabet="@`~<!->ab./ \n", max_size=300))
def test_any_text_can_be_parsed(text: str) -> None:
    for include in find_includes(text):
        assert "@" + include.spellings[0] in text


def test_hostile_text_is_parsed_quickly() -> None:
    """Backtracking over unclosed code would take hours; the time limit of the test run is the judge."""
    growing = "a".join("`" * length for length in range(1, 1200))
    for text in (
        growing,
        growing[::-1] + growing,
        "`" * 50_000,
        "``a" * 20_000,
        "<!--" * 20_000,
        "```\n" * 20_000,
        "~~~ " * 20_000,
        "`a" * 30_001,
    ):
        find_includes(text)
