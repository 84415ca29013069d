"""Formats fenced code blocks in messages: no text can end its own fence, and `fenced_in` reads it back.

All callers use one format, so that a block is recognised anywhere: a final newline ends the last line without adding a
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
    """Return the text as a fenced code block that no fence inside it can close."""
    longest = max((len(run) for run in _RUNS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    body = text.removesuffix("\n") if text.strip("\n") else text  # blank lines alone are all kept
    return f"{fence}{_LABEL.sub('', label)[:_MAX_LABEL]}\n{body}\n{fence}"


def label_of(path: str, filetype: str = "") -> str:
    """Return the label of a file's code block: its suffix, or else the editor's filetype."""
    return PurePath(path).suffix.lstrip(".") or filetype


def fenced_in(content: str) -> Iterator[list[str]]:
    """Yield the lines of each fenced code block in a message, in order; unclosed blocks are left out."""
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
