"""Functions that shorten a text: the result fits, short texts are unchanged, and nothing is invented."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.formats import cutting

TEXTS = st.text(st.characters(codec="utf-8"), max_size=1_500)
SIZES = st.integers(3, 1_600)
IN_CHARACTERS = [
    cutting.cut,
    cutting.cut_line,
    cutting.cut_line_middle,
    cutting.cut_middle,
    cutting.cut_middle_or_tail,
]


@pytest.mark.parametrize("shorten", IN_CHARACTERS, ids=lambda function: function.__name__)
@given(text=TEXTS, size=SIZES)
def test_no_text_exceeds_its_size(shorten: Callable[[str, int], str], text: str, size: int) -> None:
    """A short text stays unchanged, or is joined into one line."""
    assert len(shorten(text, size)) <= size
    if len(text) <= size:
        assert shorten(text, size) in (text, " ".join(text.split()))


@given(TEXTS, SIZES)
def test_limits_in_bytes_and_screen_cells_are_kept_too(text: str, size: int) -> None:
    assert len(cutting.cut_line_bytes(text, size).encode()) <= size
    assert cutting.cells(cutting.cut_cells(text, size)) <= size


@given(TEXTS, st.integers(1, 400))
def test_limits_in_tokens_are_kept_or_the_text_is_empty(text: str, size: int) -> None:
    """The counter decides; here four characters are a token."""

    def count(piece: str) -> int:
        return (len(piece) + 3) // 4

    assert count(cutting.cut_to_tokens(text, size, count)) <= size


def test_an_omission_leaves_its_mark() -> None:
    text = "one two three " * 100
    assert cutting.cut(text, 8) == "one two…"
    assert cutting.cut_line(text, 9) == "one two…"
    assert cutting.cut_line_bytes(text, 10) == "one two…"
    assert cutting.cut_cells("中文中文", 6) == "中文…"
    assert cutting.cut_line_middle(text, 30) == "one two three one … two three"
    assert cutting.cut_middle(text, 100).count("characters left out]…") == 1
    assert cutting.cut_middle_or_tail(text, 700).count(cutting.TRUNCATED) == 1
    assert cutting.cut_middle_or_tail(text, 10) == "one two..."
    assert cutting.cut_with_note(text, 20, 7, " and more") == "one two and more"
    assert cutting.cut_with_note("short", 20, 3, " and more") == "short"


@pytest.mark.parametrize(
    ("cells", "cut"),
    [
        (40, "what does f do, and why"),
        (18, "what does f do…"),
        (10, "what does…"),
        (9, "what doe…"),
        (6, "what…"),
        (3, "wh…"),
    ],
)
def test_a_cell_ends_with_a_whole_word_where_that_costs_little(cells: int, cut: str) -> None:
    assert cutting.cut_cells_at_word("what does f do, and why", cells) == cut
