"""Texts in fences, as messages show them: a text can never end its own fence, and `fenced_in` reads it back.

All callers use one form, so that a text is recognised anywhere: a final newline ends the last line without adding a
blank one, and the label of a file is its suffix.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from codecompanion.formats.regex import regex

_RUNS = regex(r"`{3,}")
_OPENS = regex(r"(`{3,})[^`\s]{0,60}")
_LABEL = regex(r"[^\w+#.-]")
_MAX_LABEL = 40


def fenced(text: str, label: str = "") -> str:
    """Return the text in a fence that no fence inside of it can close."""
    longest = max((len(run) for run in _RUNS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    body = text.removesuffix("\n") if text.strip("\n") else text  # blank lines alone are all kept
    return f"{fence}{_LABEL.sub('', label)[:_MAX_LABEL]}\n{body}\n{fence}"


def label_of(path: str, filetype: str = "") -> str:
    """Return the label of a file's fence: its suffix, or else the editor's filetype."""
    return PurePath(path).suffix.lstrip(".") or filetype


def fenced_in(content: str) -> Iterator[list[str]]:
    """Yield the lines of each fenced text in a content, in order; unclosed ones are left out."""
    body, fence = list[str](), ""
    for line in content.split("\n"):
        if not fence:
            opens = _OPENS.fullmatch(line)
            fence = opens[1] if opens else ""
        elif line == fence:
            yield body
            body, fence = [], ""
        else:
            body.append(line)
