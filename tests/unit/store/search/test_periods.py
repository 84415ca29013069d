"""The dates in a question (R-516): absolute, relative to today, of any year; and lookalikes."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.store.search.periods import date_of, find_periods

TODAY = datetime.date(2023, 5, 17)  # a Wednesday


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("what did we say on 16 August, 2022?", "2022-08-16", "2022-08-16"),
        ("the review of August 16th 2022", "2022-08-16", "2022-08-16"),
        ("in May 2023", "2023-05-01", "2023-05-31"),
        ("in feb 2024", "2024-02-01", "2024-02-29"),
        ("the run of 2023-05-08", "2023-05-08", "2023-05-08"),
        ("the bill of 2023-04", "2023-04-01", "2023-04-30"),
        ("during 2021", "2021-01-01", "2021-12-31"),
        ("yesterday", "2023-05-16", "2023-05-16"),
        ("last Tuesday", "2023-05-16", "2023-05-16"),
        ("last wednesday", "2023-05-10", "2023-05-10"),
        ("last week", "2023-05-08", "2023-05-14"),
        ("last month", "2023-04-01", "2023-04-30"),
        ("last year", "2022-01-01", "2022-12-31"),
        ("three days ago", "2023-05-14", "2023-05-14"),
        ("two weeks ago", "2023-04-30", "2023-05-06"),
    ],
)
def test_a_period_is_parsed(question: str, first: str, last: str) -> None:
    (period,) = find_periods(question, TODAY)
    assert (period.first.isoformat(), period.last.isoformat()) == (first, last)


@pytest.mark.parametrize("question", ["may I ask?", "march on", "31 June 2023", "2023-13-01", "mark sept", "a second"])
def test_a_lookalike_of_a_date_is_not_one(question: str) -> None:
    assert [one for one in find_periods(question, TODAY) if one.first.year != 2000] == []
    assert find_periods("may I march?", TODAY) == []


def test_a_month_without_a_year_matches_every_year() -> None:
    (period,) = find_periods("in October", TODAY)
    days = [datetime.date(2019, 10, 5), datetime.date(2024, 10, 31), datetime.date(2024, 11, 2)]
    assert [period.days_off(day) for day in days] == [0, 0, 2]


def test_a_date_at_the_start_of_a_message_is_parsed() -> None:
    assert date_of("[1:56 pm on 8 May, 2023] Ann: hello") == datetime.date(2023, 5, 8)
    assert date_of("in May 2023") is None
    assert date_of("no date") is None


@given(st.text(max_size=40), st.dates(min_value=datetime.date(1970, 1, 1)))
def test_any_text_can_be_parsed(text: str, today: datetime.date) -> None:
    for period in find_periods(f"{text} 3 months ago {text} last Friday", today):
        assert period.first <= period.last
