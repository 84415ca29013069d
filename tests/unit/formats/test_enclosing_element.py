"""The element around a text for the model is not shown to the user."""

from __future__ import annotations

import pytest

from codecompanion.formats.enclosing_element import without_element


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ('<rules path="AGENTS.md">\nUse tabs.\n\nAlways.\n</rules>', "Use tabs.\n\nAlways."),
        ("<a>\n<a>\nx\n</a>\n</a>", "<a>\nx\n</a>"),
        ("<a>\nx\n</b>", "<a>\nx\n</b>"),
        ("Use <b>\nx\n</b>", "Use <b>\nx\n</b>"),
        ("", ""),
    ],
)
def test_only_an_element_around_the_whole_text_is_removed(text, inside):
    assert without_element(text) == inside
