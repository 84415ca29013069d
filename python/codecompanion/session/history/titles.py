"""The title of a chat, derived from its first message or given by the user."""

from __future__ import annotations

from codecompanion.errors import InputError
from codecompanion.formats.cutting import cut_line
from codecompanion.formats.regex import regex

TITLE_CHARS = 60
GIVEN_CHARS = 200
_QUOTED = regex(r"[^\n]{1,400}:\d+-\d+\n(`{3,20})[^\n`]{0,80}\n")


def title_of(text: str, most: int = TITLE_CHARS) -> str:
    """Return a chat's title: the first words of its first message on one line, skipping quoted lines of files."""
    return cut_line((_after_quoted(text) or text)[: 10 * most], most)


def _after_quoted(text: str) -> str:
    """Return the text after any leading quoted lines, as written by `:'<,'>CodeCompanionChat`."""
    while found := _QUOTED.match(text):
        end = text.find(f"\n{found[1]}\n", found.end() - 1)
        if end < 0:
            return ""
        text = text[end + len(found[1]) + 2 :].lstrip()
    return text


def given_title(text: str) -> str:
    """Return a title given by the user, on one line.

    Raises:
        InputError: the title has no words.
    """
    title = title_of(text, GIVEN_CHARS)
    if not title:
        raise InputError("The title is empty; give at least one word.")
    return title
