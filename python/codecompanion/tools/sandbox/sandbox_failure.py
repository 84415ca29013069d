"""Guesses from the output of a failed command whether the sandbox caused the failure. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

Trouble = Literal["", "network", "outside", "unsure"]
LOOKED_AT_CHARS = 8_000
"""Number of characters at the end of the output to search for the cause of a failure, which is usually there."""

MAX_HOSTS = 10
_PATH = regex(r"(?<![\w/.:])(/[^\s'’\":,]{1,1000})")


def trouble_of(output: str) -> tuple[Trouble, str]:
    """Return the likely reason that the sandbox made a command fail, and the words in its output that show this."""
    table, end = package_table("tools/sandbox/trouble.toml"), output[-LOOKED_AT_CHARS:].lower()
    kinds: tuple[Trouble, ...] = ("outside", "network", "unsure")
    found = ((kind, word) for kind in kinds for word in table[kind] if _whole(word).search(end))
    return next(found, ("", ""))


def refused_paths(output: str, words: str) -> tuple[str, ...]:
    """Return the absolute paths in the lines that contain these words."""
    lines = [line for line in output[-LOOKED_AT_CHARS:].split("\n") if _whole(words).search(line.lower())]
    return tuple(dict.fromkeys(path for line in lines for path in _PATH.findall(line)))


def is_refused_quietly(output: str) -> bool:
    """Return whether the output of a successful command reports something that the sandbox refused."""
    end = output[-LOOKED_AT_CHARS:].lower()
    return any(_whole(word).search(end) for word in package_table("tools/sandbox/trouble.toml")["quiet"])


@cache
def _whole(word: str) -> re.Pattern[str]:
    """Return a pattern that matches a table entry only as a whole word (not `enotfound` in `ModuleNotFoundError`)."""
    return re.compile(rf"(?<!\w){re.escape(word)}" + ("" if " " in word else r"(?!\w)"))


def unresolved_hosts(output: str) -> tuple[str, ...]:
    """Return the hosts that the output of a failed command reports as unresolved."""
    end = output[-LOOKED_AT_CHARS:]
    found = dict[str, None]()
    for pattern in package_table("tools/sandbox/trouble.toml")["unresolved"]:
        found |= dict.fromkeys(name.lower() for name in re.findall(pattern, end) if "." in name.strip("."))
    return tuple(found)[:MAX_HOSTS]
