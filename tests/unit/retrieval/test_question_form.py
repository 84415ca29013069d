"""The wording of a question, apart from its subject (R-207)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.retrieval.question_form import forms_of, technologies


def test_a_form_has_no_subject() -> None:
    assert forms_of("where are redirects followed") == forms_of("Where are cookies parsed?")
    assert {"where", "^ where are", "are S", "S ED", "ED $"} <= forms_of("where are redirects followed")


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("parse_url", "CODE"),
        ("parseUrl", "CODE"),
        ("client.py", "CODE"),
        ("404", "NUM"),
        ("parsing", "ING"),
        ("thrown", "ED"),
        ("ring", "X"),
        ("class", "class"),
        ("process", "X"),
        ("quickly", "LY"),
    ],
)
def test_words_have_kinds(word: str, kind: str) -> None:
    assert kind in forms_of(word)


def test_common_words_are_not_technologies() -> None:
    assert {"react", "java", "python"} <= technologies()
    assert technologies().isdisjoint({"go", "express", "spring", "node"})


@given(st.text(max_size=2_000))
def test_any_text_has_few_forms(text: str) -> None:
    assert len(forms_of(text)) <= 2 * 40 + 3
