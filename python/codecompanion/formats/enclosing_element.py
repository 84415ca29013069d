"""Removes the XML element in which the plugin encloses a text for the model."""

from __future__ import annotations

import re

from codecompanion.formats.regex import regex

_ENCLOSED = regex(r"<(?P<name>[\w-]+)(?: [^>\n]*)?>\n(?P<text>.*)\n</(?P=name)>\s*", re.DOTALL)


def without_element(text: str) -> str:
    """Return the text inside the element, or the whole text if no element encloses all of it."""
    found = _ENCLOSED.fullmatch(text)
    return found["text"] if found else text
