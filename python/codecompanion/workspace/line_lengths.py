"""Detects generated text by line length: minified code, data URLs, tables of 100,000 rows.

A file of long lines is generated. One with other lines belongs to the project, and only its long lines are not
searched. A very long file of very short lines is searched by its words, but not parsed.
"""

from __future__ import annotations

LONG_LINE = 5_000
"""In bytes, or characters of a chunk."""
_MAX_PROSE = 20_000
_WORDS_PER_CHAR = 0.1
_OTHERS_A_LINE = 2
_LONG_ON_AVERAGE = 300
_MANY_LINES = 20_000
_SHORT_LINE = 16
"""Average bytes of a row; code has about 35."""


def is_made_of_long_lines(content: bytes) -> bool:
    """Return whether a file consists almost only of long lines: besides them a license above or a source map below."""
    if len(content) <= LONG_LINE or len(content) < _LONG_ON_AVERAGE * content.count(b"\n"):
        return False  # nearly every file, and on every read
    sizes = [len(line) for line in content.split(b"\n") if line.strip()]
    long = [size for size in sizes if size > LONG_LINE]
    others = len(sizes) - len(long)
    is_most = 2 * sum(long) > len(content)
    return bool(long) and is_most and others <= _OTHERS_A_LINE * len(long)


def is_flat(content: bytes) -> bool:
    """Return whether a file is a table: parsing it would take seconds, for a name in each of its rows."""
    lines = content.count(b"\n")
    return lines > _MANY_LINES and len(content) < _SHORT_LINE * lines


def is_worth_searching(text: str) -> bool:
    """Return whether the text of a chunk is for readers: not one long line, unless it is a paragraph of words."""
    if len(text) <= LONG_LINE or max(map(len, text.split("\n"))) <= LONG_LINE:
        return True
    return len(text) <= _MAX_PROSE and text.count(" ") > _WORDS_PER_CHAR * len(text)
