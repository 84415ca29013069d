"""Tests that the table of attacks sums up the rows of the suites."""

from __future__ import annotations

import pytest

from tests.attacks.conftest import Tally


def test_a_suite_that_tried_nothing_is_an_error(tally: Tally) -> None:
    with pytest.raises(AssertionError, match="nothing was tried"):
        tally("an empty suite", tried=0, held=0)


def test_a_suite_cannot_list_more_attacks_than_it_tried(tally: Tally) -> None:
    with pytest.raises(AssertionError, match="3 of 2"):
        tally("a wrong sum", tried=2, held=3)
