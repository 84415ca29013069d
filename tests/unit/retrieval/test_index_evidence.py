"""R-207: whether a question is about the project, judged by the index's contents."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.retrieval.classifier import WordRules, classify_by_words
from codecompanion.retrieval.index_evidence import (
    Evidence,
    classify_by_index,
    form_score,
    read_for_evidence,
    share_at_large,
    telling_words,
    word_tables,
)

NOTHING = Evidence(pieces=1_000, with_word={}, with_pair={})
HAS = Evidence(
    pieces=1_000,
    with_word={"redirects": 60, "followed": 40},
    with_pair={"redirects followed": 5},
    with_name={"redirects": 12, "followed": 1},
)


def test_specific_hits_make_a_question_about_the_project() -> None:
    found = classify_by_index("where are redirects followed", HAS)
    assert (found.is_codebase_related, found.is_broad, found.confidence) == (True, False, "high")
    assert found.source == "index"
    assert found.categories == ("api",)
    assert found.likelihood is not None
    assert found.likelihood > 0.9


def test_without_hits_a_question_is_not_about_the_project() -> None:
    found = classify_by_index("where are redirects followed", NOTHING)
    assert not found.is_codebase_related
    assert found.likelihood is not None
    assert found.likelihood < 0.1
    assert found.categories == ()


@pytest.mark.parametrize("pieces", [0, 1, 5, 50, 100_000])
def test_words_missing_from_a_project_of_any_size_are_not_about_it(pieces: int) -> None:
    nothing = msgspec.structs.replace(NOTHING, pieces=pieces)
    assert not classify_by_index("What is the capital of France?", nothing).is_codebase_related


@pytest.mark.parametrize(
    "question", ["what does this project do", "give me an overview of our codebase", "why is this plugin here"]
)
def test_a_question_with_only_the_projects_name_is_broad(question: str) -> None:
    found = classify_by_index(question, NOTHING)
    assert (found.is_codebase_related, found.is_broad) == (True, True)


def test_the_folder_names_the_project_if_it_is_a_rare_word() -> None:
    named = msgspec.structs.replace(NOTHING, name="zustand")
    assert classify_by_index("what is zustand?", named).is_broad
    common = msgspec.structs.replace(NOTHING, name="main")
    assert not classify_by_index("what is the main thing?", common).is_codebase_related


def test_a_file_of_the_project_is_sufficient() -> None:
    has_file = msgspec.structs.replace(NOTHING, has_file=True)
    assert classify_by_index("fix _client.py", has_file).is_codebase_related


def test_a_definition_of_the_project_is_sufficient() -> None:
    """In a project of three files most words of a question are missing."""
    has_definition = msgspec.structs.replace(NOTHING, has_definition=True)
    assert classify_by_index("What does bake_bread do?", has_definition).likelihood >= 0.9


@pytest.mark.parametrize(
    "less",
    [
        {"with_word": {"redirects": 60, "followed": 0}, "with_pair": {}},
        {"with_word": {"redirects": 3, "followed": 3}},
        {"with_name": {}},
        {"with_pair": {}},
        {"pieces": 50_000},
    ],
    ids=str,
)
def test_each_signal_counts(less: dict[str, object]) -> None:
    question = "where are redirects followed"
    whole = classify_by_index(question, HAS).likelihood
    without = classify_by_index(question, msgspec.structs.replace(HAS, **less)).likelihood
    assert whole is not None
    assert without is not None
    assert without < whole


def test_words_common_to_all_projects_count_less() -> None:
    assert share_at_large("file") > 5 * share_at_large("redirects") > 25 * share_at_large("zustand")


def test_wording_of_general_questions_counts_against_them() -> None:
    likely = [classify_by_index(f"{asks} redirects followed", HAS).likelihood or 0 for asks in ("fix", "what is")]
    assert likely[0] > likely[1]


@pytest.mark.parametrize("question", ["hello", "thanks", "write me a haiku", "how do I reverse a list in Python"])
@pytest.mark.parametrize("pieces", [50, 5_000])
def test_small_talk_and_general_questions_are_not_about_the_project(question: str, pieces: int) -> None:
    """Each word is as common in this project as in general."""
    words = telling_words(read_for_evidence(question))
    usual = {word: round(pieces * share_at_large(word)) for word in words}
    evidence = Evidence(pieces=pieces, with_word=usual, with_pair={})
    assert not classify_by_index(question, evidence).is_codebase_related


@pytest.mark.parametrize("question", ["hello", "Hi!", "thanks", "ok"])
def test_small_talk_is_not_about_code_that_has_its_words(question: str) -> None:
    """`print("hello")` is in many projects."""
    words = telling_words(read_for_evidence(question))
    often = Evidence(pieces=100, with_word=dict.fromkeys(words, 90), with_name=dict.fromkeys(words, 90), with_pair={})
    assert not classify_by_index(question, often).is_codebase_related


@pytest.mark.parametrize(
    ("question", "is_about"),
    [
        ("Wo werden die Cookies gespeichert und wann verfallen sie?", True),
        ("在哪里处理redirects", True),
        ("redirects はどこで処理されますか", True),
        ("Schreibe mir ein Haiku über den Herbst", False),
        ("写一首俳句", False),
    ],
)
def test_other_languages_are_judged_by_the_words_in_the_project(question: str, is_about: bool) -> None:
    """A German question can be about a project even if its code is in English."""
    words = telling_words(read_for_evidence(question))
    has = {"cookies": 40, "redirects": 60}
    evidence = Evidence(
        pieces=1_000,
        with_word={word: has.get(word.lower(), 0) for word in words},
        with_name={word: has.get(word.lower(), 0) // 5 for word in words},
        with_pair={},
    )
    assert classify_by_index(question, evidence).is_codebase_related is is_about


def test_strict_excludes_without_exceptions() -> None:
    """R-208; R-211: short words are never misspelt keywords, strict or not."""
    strict = WordRules(with_exceptions=False)
    excused = "why is the login of this project not tested"
    assert [classify_by_words(excused, rules).is_codebase_related for rules in (WordRules(), strict)] == [True, False]
    short = "a haiku on autumn by the sea"
    assert [classify_by_words(short, rules).is_codebase_related for rules in (WordRules(), strict)] == [False, False]


@given(st.text(max_size=200), st.integers(0, 100))
def test_any_question_has_a_likelihood(question: str, pieces: int) -> None:
    found = classify_by_index(question, Evidence(pieces=pieces, with_word={}, with_pair={}))
    assert found.likelihood is not None
    assert 0 <= found.likelihood <= 1


@pytest.mark.parametrize(
    ("asks", "asks_in_general"),
    [
        ("where are redirects followed", "how do you follow redirects"),
        ("what happens when redirects are followed", "what are redirects"),
    ],
)
def test_the_form_of_a_question_counts(asks: str, asks_in_general: str) -> None:
    forms = word_tables().forms
    assert form_score(asks, forms) > 0 > form_score(asks_in_general, forms)


def test_a_technology_that_the_project_hardly_has_counts_against_it() -> None:
    question = "how are redirects followed in Java"
    foreign = classify_by_index(question, HAS).likelihood
    its_own = msgspec.structs.replace(HAS, with_word={**HAS.with_word, "java": 60})
    assert (foreign or 0) < 0.02 < 0.1 < (classify_by_index(question, its_own).likelihood or 0)
