"""The window around the cursor (R-256) and positions in a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.completion.window import cut_window, split_at
from codecompanion.errors import InputError


def test_the_window_has_eight_thousand_characters_before_and_two_thousand_after():
    """R-256: the window is cut between characters, even multi-byte ones, and may begin or end within a line."""
    window = cut_window("é" * 9_000, "語" * 3_000)
    assert [len(text) for text in (window.above, window.prefix, window.suffix, window.below)] == [
        1000,
        8000,
        2000,
        1000,
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "before"),
    [
        ("", 0, 0, ""),
        ("abc", 0, 0, ""),
        ("abc", 0, 3, "abc"),
        ("a\nbc\n", 1, 1, "a\nb"),
        ("a\nbc\n", 2, 0, "a\nbc\n"),
        ("é語x", 0, 2, "é"),
        ("é語x", 0, 5, "é語"),
        ("🦀y", 0, 4, "🦀"),
        ("a\r\nb\r\n", 0, 1, "a"),
        ("a\r\nb\r\n", 1, 1, "a\r\nb"),
        ("a\u2028b\x0bc\rd", 0, 4, "a\u2028"),
        ("\ud800a", 0, 3, "\ud800"),
    ],
)
def test_a_position_is_a_line_and_a_column_of_bytes(text, line, column, before):
    assert split_at(text, line, column) == (before, text[len(before) :])


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("abc\n", 0, 4, "column 4 is beyond line 0, which has 3 bytes"),
        ("é", 0, 1, "column 1 of line 0 is inside a character"),
        ("abc", 0, -1, "column -1 is beyond line 0"),
        ("abc", 1, 0, "line 1 is beyond the text, which has lines 0 to 0"),
        ("abc", -1, 0, "line -1 is beyond"),
        ("", 0, 1, "column 1 is beyond line 0, which has 0 bytes"),
    ],
)
def test_an_invalid_position_is_named(text, line, column, said):
    with pytest.raises(InputError, match=said):
        split_at(text, line, column)


@given(st.text(st.characters(codec="utf-8"), max_size=200), st.data())
def test_every_character_of_a_text_has_its_position(text, data):
    index = data.draw(st.integers(0, len(text)))
    before = text[:index]
    column = len(before.rpartition("\n")[2].encode())
    assert split_at(text, before.count("\n"), column) == (before, text[index:])
