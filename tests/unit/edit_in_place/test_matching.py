"""Matched lines of two texts are equal and in order, and there are as many as can be expected for a long text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.edit_in_place import matching
from codecompanion.edit_in_place.matching import matching_lines

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "}", "d", "e", "f"]), max_size=30)


@pytest.mark.parametrize("most", [0, 10**6])
@given(LINES, LINES)
def test_matched_lines_are_equal_and_in_order(most, old, new):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_MAX_COMPARISONS", most)
        pairs = matching_lines(old, new)
    assert all(old[left] == new[right] for left, right in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))


@given(LINES)
def test_a_text_matches_itself(lines):
    assert matching_lines(lines, lines) == [(at, at) for at in range(len(lines))]


def test_a_long_text_is_matched_around_its_changes():
    old = [f"line {at}" if at % 3 else "}" for at in range(3_000)]
    new = [line + "!" if at % 100 == 50 else line for at, line in enumerate(old)]
    del new[1_000:1_010]
    kept = {old[left] for left, right in matching_lines(old, new)} - {"}"}
    assert len(kept) == len({*old} & {*new} - {"}"})
