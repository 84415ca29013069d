"""R-219, R-220: the search terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.retrieval.search_terms import model_terms, simple_terms


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("How does parse_config handle the TOML-file?", ("parse_config", "handle", "toml", "file")),
        ("Config config CONFIG!", ("config",)),
        ("is it in an if or so", ()),
        ("a bc def", ("def",)),
        ("don't getUserById(42)", ("getuserbyid",)),
        (" ".join(f"word{n}" for n in range(30)), tuple(f"word{n}" for n in range(10))),
        ("认证 как это", ()),
        ("", ()),
        ("a\0b\0cde", ("cde",)),
    ],
)
def test_simple_terms_are_extracted(question: str, terms: tuple[str, ...]) -> None:
    """R-219: terms are in lower case, with three or more letters, without stop words and duplicates; at most ten."""
    assert simple_terms(question) == terms


@given(st.text(max_size=400))
def test_simple_terms_are_words(question: str) -> None:
    terms = simple_terms(question)
    assert len(terms) == len(set(terms)) <= 10
    assert all(len(term) >= 3 and term.isascii() and term == term.lower() for term in terms)


@pytest.mark.parametrize(
    ("reply", "terms"),
    [
        ("login, session store , JWT", ("login", "session store", "JWT")),
        ("```\n1. login\n2. session store\n```", ("login", "session store")),
        ('"a", "login", "", "user id"', ("login", "user id")),
        ("I am sorry that I cannot do this, really", ()),
        ("I cannot say", ()),
        ("", ()),
        (",".join(f"term{n}" for n in range(30)), tuple(f"term{n}" for n in range(10))),
    ],
)
def test_a_models_terms_are_parsed(reply: str, terms: tuple[str, ...]) -> None:
    """R-220: terms are separated by commas and have one to three words each."""
    assert model_terms(reply) == terms
