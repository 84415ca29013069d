"""The title of a chat, derived from its first message or given by the user."""

from __future__ import annotations

from codecompanion.errors import InputError
from codecompanion.formats.cutting import cut_line, without_code

TITLE_CHARS = 60
GIVEN_CHARS = 200


def title_of(text: str, most: int = TITLE_CHARS) -> str:
    """Return a chat's title: the first words of its first message on one line, without code blocks."""
    return cut_line(without_code(text)[: 10 * most], most)


def given_title(text: str) -> str:
    """Return a title given by the user, on one line.

    Raises:
        InputError: the title has no words.
    """
    title = title_of(text, GIVEN_CHARS)
    if not title:
        raise InputError("The title is empty; give at least one word.")
    return title
