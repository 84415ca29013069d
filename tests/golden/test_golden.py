"""Every story against its record."""

from __future__ import annotations

import pytest

from tests.golden.record import RECORDS, difference, names, play


@pytest.mark.parametrize("name", names())
def test_the_chat_equals_its_record(name: str) -> None:
    told = difference(name, play(name))
    if told:
        pytest.fail(told, pytrace=False)


def test_every_record_belongs_to_a_story() -> None:
    assert {path.stem for path in RECORDS.glob("*.json")} == set(names())
