"""Lines so long that no person wrote them (minified code, data URLs): a file of such lines is generated.

A file that has other lines is a project's own, and only its long lines are not searched (issue 11, section 4).
"""

from __future__ import annotations

LONG_LINE = 5_000
"""Bytes, or characters of a chunk."""
_MAX_PROSE = 20_000
_WORDS_PER_CHAR = 0.1
_OTHERS_A_LINE = 2


def is_made_of_long_lines(content: bytes) -> bool:
    """Return whether hardly anything but long lines stands in a file: a license above them, a source map below."""
    if len(content) <= LONG_LINE:
        return False
    sizes = [len(line) for line in content.split(b"\n") if line.strip()]
    long = [size for size in sizes if size > LONG_LINE]
    others = len(sizes) - len(long)
    is_most = 2 * sum(long) > len(content)
    return bool(long) and is_most and others <= _OTHERS_A_LINE * len(long)


def is_worth_searching(text: str) -> bool:
    """Return whether the text of a chunk is for readers: not one long line, unless it is a paragraph of words."""
    if len(text) <= LONG_LINE or max(map(len, text.split("\n"))) <= LONG_LINE:
        return True
    return len(text) <= _MAX_PROSE and text.count(" ") > _WORDS_PER_CHAR * len(text)
