"""Finds the days a question names: "in May 2023", "on 16 August", "last Tuesday", "two weeks ago", "2023-05-08".

Understands English names of months and days, and numeric dates. A month without a year matches any year.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

import msgspec

from codecompanion.formats.regex import regex

_MONTHS = "january february march april may june july august september october november december".split()
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_SHORT = [name[:3] for name in _MONTHS if name != "may"]
_ISO = regex(r"\b(\d{4})-(\d{2})(?:-(\d{2}))?\b")
_NAMED = regex(
    r"(?:\b(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?)?"
    rf"\b({'|'.join([*_MONTHS, 'sept', *_SHORT])})\b\.?"
    r"(?:\s+(\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s*(\d{4})\b)?"
)
_ALSO_WORDS = frozenset({"may", "march", "mar", "jun", "dec", "sep", "jan"})
_BEFORE_A_MONTH = regex(r"\b(?:in|of|during|since|until|till|by|from|early|late|mid|last|this)[ -]+$")
_YEAR = regex(r"\b(?:in|during|of|since|year)\s+((?:19|20)\d{2})\b")
_AGO = regex(rf"\b(\d{{1,3}}|an?|{'|'.join(_NUMBERS[1:])})\s+(day|week|month|year)s?\s+ago\b")
_LAST = regex(rf"\b(last|past|this)\s+(week|weekend|month|year|{'|'.join(_DAYS)})\b")
_NEAR = {"today": 0, "tonight": 0, "this morning": 0, "yesterday": 1, "last night": 1}
_UNITS = {"day": (1, 0), "week": (7, 3), "month": (30, 10), "year": (365, 90)}
"""Length of each unit in days, and the tolerance of phrases such as "two weeks ago" in days."""


class Period(msgspec.Struct, frozen=True):
    """The days from `first` to `last`. With `any_year`, both are in 2000, a leap year."""

    first: datetime.date
    last: datetime.date
    any_year: bool = False

    def days_off(self, day: datetime.date) -> int:
        """Return the number of days from the period to the day: 0 within, negative before it."""
        day = day.replace(year=2000) if self.any_year else day
        return (day - self.first).days if day < self.first else max(0, (day - self.last).days)


def find_periods(question: str, today: datetime.date) -> list[Period]:
    """Return the periods the question names, relative to `today`."""
    text = question.lower()
    found = [*_dates(text), *_relative(text, today)]
    return found or [one for match in _YEAR.finditer(text) for one in _period(int(match[1]), None, None)]


def date_of(text: str) -> datetime.date | None:
    """Return the first full date in the text, with day, month and year."""
    if not any(letter.isdigit() for letter in text):
        return None
    full = (one for one in _dates(text.lower()) if one.first == one.last and not one.any_year)
    return next((one.first for one in full), None)


def _dates(text: str) -> Iterator[Period]:
    for match in _ISO.finditer(text):
        yield from _period(int(match[1]), int(match[2]), int(match[3]) if match[3] else None)
    for match in _NAMED.finditer(text):
        day, name, later_day, year = match.groups()
        which = day or later_day
        if name in _ALSO_WORDS and not (which or year or _BEFORE_A_MONTH.search(text[: match.start(2)])):
            continue
        month = next(number for number, full in enumerate(_MONTHS, 1) if full.startswith(name[:3]))
        yield from _period(int(year) if year else None, month, int(which) if which else None)


def _period(year: int | None, month: int | None, day: int | None) -> Iterator[Period]:
    """Yield the period, or nothing for an impossible date such as 31 June."""
    try:
        first = datetime.date(year or 2000, month or 1, day or 1)
        if day:
            last = first
        else:
            last_month = first.replace(month=month or 12)
            last = _end_of_month(last_month)
        yield Period(first, last, any_year=year is None)
    except ValueError:
        return


def _relative(text: str, today: datetime.date) -> Iterator[Period]:
    for phrase, days in _NEAR.items():
        if re.search(rf"\b{phrase}\b", text):
            yield _around(today, days, 0)
    for match in _AGO.finditer(text):
        count = _NUMBERS.index(match[1]) if match[1] in _NUMBERS else int(match[1]) if match[1].isdigit() else 1
        unit, off = _UNITS[match[2]]
        yield _around(today, min(count * unit, 36_500), off)
    for match in _LAST.finditer(text):
        which, unit_name = match.groups()
        if unit_name in _DAYS:
            yield _around(today, (today.weekday() - _DAYS.index(unit_name)) % 7 or 7, 0)
        else:
            yield _calendar(unit_name, today, back=which != "this")


def _around(today: datetime.date, days: int, off: int) -> Period:
    day = today - datetime.timedelta(days)
    return Period(day - datetime.timedelta(off), day + datetime.timedelta(off))


def _end_of_month(day: datetime.date) -> datetime.date:
    from calendar import monthrange  # slow to import, rarely needed

    return day.replace(day=monthrange(day.year, day.month)[1])


def _calendar(unit: str, today: datetime.date, *, back: bool) -> Period:
    """Return the week, weekend, month or year that contains `today`, or the one before it."""
    if unit == "month":
        first = today.replace(day=1)
        first = (first - datetime.timedelta(1)).replace(day=1) if back else first
        return Period(first, _end_of_month(first))
    if unit == "year":
        year = today.year - back
        return Period(datetime.date(year, 1, 1), datetime.date(year, 12, 31))
    monday = today - datetime.timedelta(today.weekday() + 7 * back)
    return Period(monday + datetime.timedelta(5 if unit == "weekend" else 0), monday + datetime.timedelta(6))
