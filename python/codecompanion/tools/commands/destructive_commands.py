"""Detects shell commands that destroy work irrecoverably; these commands always ask, regardless of grants. Pure.

The words of each command in a line are read without parsing shell syntax, so there may be false positives; each costs a
keypress. This is not a security boundary: a script can destroy work, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from codecompanion.formats.regex import regex
from codecompanion.tools.commands import risky_programs

_COMMANDS = regex(r"[;&|\n\r(){}`]+")
_ASSIGNMENT = regex(r"[A-Za-z_][A-Za-z0-9_]*=")

_TAKE_A_WORD = frozenset("-C -c --git-dir --work-tree --namespace".split())


def destroys_work(command: str) -> bool:
    """Return whether a command of the line is one of `risky_programs.DESTROYERS` or `risky_programs.DESTROYING`."""
    return any(_destroys(words) for words in loose_commands(command))


def loose_commands(command: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line, without leading assignments. Quotes count as blanks."""
    for part in _COMMANDS.split(command):
        words = part.replace("'", " ").replace('"', " ").split()
        while words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
        if words:
            yield words


def _destroys(words: list[str]) -> bool:
    first = risky_programs.known_name(words[0])
    runs_others = first in risky_programs.NEVER or (first in risky_programs.RUNNERS and first != "git")
    return any(
        risky_programs.known_name(word) in risky_programs.DESTROYERS or _is_destroying(words[at:])
        for at, word in enumerate(words if runs_others else words[:1])
    )


def _is_destroying(words: list[str]) -> bool:
    """Return whether the words begin with a program and a destructive subcommand, with only options between them."""
    destroying = risky_programs.DESTROYING.get(risky_programs.known_name(words[0]), frozenset())
    rest = iter(words[1:] if destroying else ())
    for word in rest:
        if word in _TAKE_A_WORD:
            next(rest, None)
        elif not word.startswith("-"):
            return word in destroying
    return False
