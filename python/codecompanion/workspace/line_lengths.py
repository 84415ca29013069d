"""Detects generated text by line length: minified code, data URLs, tables of 100,000 rows.

A file of only long lines is generated. A file that also has other lines belongs to the project, and only its long lines
are not searched. The words of a very long file of very short lines are searched, but the file is not parsed.
"""

from __future__ import annotations

LONG_LINE = 5_000
"""Minimum length of a long line, in bytes of a file or characters of a chunk."""
_MAX_PROSE = 20_000
_WORDS_PER_CHAR = 0.1
_OTHERS_A_LINE = 2
_LONG_ON_AVERAGE = 300
_MANY_LINES = 20_000
_SHORT_LINE = 16
"""Maximum average number of bytes per line in a table; code has about 35."""


def is_made_of_long_lines(content: bytes) -> bool:
    """Return whether a file has almost only long lines, apart from a licence at the top or a source map at the end."""
    if len(content) <= LONG_LINE or len(content) < _LONG_ON_AVERAGE * content.count(b"\n"):
        return False  # the quick way out for nearly every file
    sizes = [len(line) for line in content.split(b"\n") if line.strip()]
    long = [size for size in sizes if size > LONG_LINE]
    others = len(sizes) - len(long)
    is_most = 2 * sum(long) > len(content)
    return bool(long) and is_most and others <= _OTHERS_A_LINE * len(long)


def is_flat(content: bytes) -> bool:
    """Return whether a file is a table, which would take seconds to parse just for a name in each row."""
    lines = content.count(b"\n")
    return lines > _MANY_LINES and len(content) < _SHORT_LINE * lines


def is_worth_searching(text: str) -> bool:
    """Return whether the text of a chunk is readable: not a single long line, unless that line is a paragraph."""
    if len(text) <= LONG_LINE or max(map(len, text.split("\n"))) <= LONG_LINE:
        return True
    return len(text) <= _MAX_PROSE and text.count(" ") > _WORDS_PER_CHAR * len(text)
