"""Questions, and the weight of adjacent messages (R-516): the parts of the ranking outside the index."""

from __future__ import annotations

import datetime

import pytest

from codecompanion.model.messages import Message, Role
from codecompanion.store.search.parsed_question import read_question
from codecompanion.store.search.ranking import (
    NEXT,
    ONLY_ASKS,
    PREVIOUS,
    Matches,
    Surroundings,
    asks,
    asks_only,
    score_rows,
)

TODAY = datetime.date(2023, 5, 17)


def said(text: str, role: Role = "assistant") -> Message:
    return Message(id="m", role=role, content=text)


@pytest.mark.parametrize(
    "text", ["Why?", 'He said "why?" and left', "Really?! Go on.", "端口是什么？", "x" * 5_000 + " ok?"]
)
def test_a_question_mark_after_a_word_marks_a_question(text: str) -> None:
    assert asks(said(text))


@pytest.mark.parametrize(
    "text", ["a?b", "https://x.test/?q=1", "^colou?r$", "no", "?" + "x" * 5_000, "why? " + "x" * 5_000]
)
def test_a_pattern_an_address_or_a_long_paste_is_not_a_question(text: str) -> None:
    assert not asks(said(text))


def test_tool_output_is_not_a_question() -> None:
    assert not asks(said("overwrite?", "tool"))
    assert not asks_only(said("overwrite?", "tool"))
    assert asks_only(said("Shall I? "))
    assert not asks_only(said("Shall I? Yes."))
    assert not asks(None)


def scores(*texts: str) -> dict[int, float]:
    """Return the scores of three messages of which only the middle one has a word of the question."""
    matches = Matches(terms=[{1: 2.0}], totals={1: 2.0}, counts={1: 1}, bonuses={})
    messages = dict(enumerate(said(text) for text in texts))
    around = Surroundings(before={1: 0, 2: 1}, after={0: 1, 1: 2})
    return score_rows(read_question("kayak", TODAY), matches, [0, 1, 2], around, messages, {})


def test_an_adjacent_message_counts_less_than_the_message_itself() -> None:
    """A hit in the next message counts more than one in the previous message, unless the previous one is a question."""
    found = scores("one", "a kayak", "two")
    assert found == {0: 2.0 * NEXT, 1: 4.0, 2: 2.0 * PREVIOUS}
    asked = scores("one", "a kayak?", "two")
    assert asked == {0: 2.0 * NEXT, 1: 4.0 * ONLY_ASKS, 2: 2.0}


def test_a_message_without_known_neighbours_counts_by_its_words() -> None:
    """An unreadable neighbour neither counts as a question nor fails."""
    matches = Matches(terms=[{1: 2.0}], totals={1: 2.0}, counts={1: 1}, bonuses={1: 1.0})
    assert score_rows(read_question("kayak", TODAY), matches, [1], Surroundings({}, {}), {}, {}) == {1: 6.0}
