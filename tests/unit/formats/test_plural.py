"""A number and its noun."""

from __future__ import annotations

import pytest

from codecompanion.formats.cutting import PREVIEW_LINES, cut_for_preview
from codecompanion.formats.plural import counted


@pytest.mark.parametrize(
    ("number", "words", "said"),
    [
        (1, ("chat",), "1 chat"),
        (0, ("chat",), "0 chats"),
        (1_200, ("chat",), "1,200 chats"),
        (1, ("entry", "entries"), "1 entry"),
        (2, ("entry", "entries"), "2 entries"),
        (1.0, ("second",), "1 second"),
        (0.5, ("second",), "0.5 seconds"),
    ],
)
def test_the_noun_agrees_with_the_number(number: float, words: tuple[str, ...], said: str) -> None:
    assert counted(number, *words) == said


def test_one_omitted_line_is_worded_as_a_line() -> None:
    left = PREVIEW_LINES + 1 - PREVIEW_LINES * 2 // 3 - PREVIEW_LINES // 3
    said = "… 1 line not shown …" if left == 1 else f"… {left} lines not shown …"
    assert said in cut_for_preview("\n".join(["x"] * (PREVIEW_LINES + 1)))
