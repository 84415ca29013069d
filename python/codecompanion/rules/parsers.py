"""Finds the includes of a rule file: `@path` with parser `claude` (R-549). Pure.

An include may be anywhere in the text, as in Claude Code, except in code (fenced or inline) and in HTML comments. It
counts only if a file of that name exists, because `@alice` and `@types/node` look identical.
"""

from __future__ import annotations

import re

import msgspec

from codecompanion.formats.regex import regex

_FENCE = regex(r"^ {0,3}(?P<fence>`{3,}|~{3,})[^\n]*$.*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_COMMENT = regex(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TICKS = regex("`+")
_INCLUDE = regex(r"(?<![\w@/.\\-])@(?P<path>[^\s@`'\"<>()\[\]{},;]+)")
_TRAILING = ".:!?"


class Include(msgspec.Struct, frozen=True):
    """An `@path` include.

    `spellings` are tried in order (`@a.md.` may end a sentence); `alone`: it is the whole line.
    """

    spellings: tuple[str, ...]
    alone: bool


def find_includes(text: str) -> tuple[Include, ...]:
    """Return the includes of a rule file in order, each path once."""
    text = text.replace("\r\n", "\n")
    text = _without_code_spans(_COMMENT.sub(" ", _FENCE.sub(" ", text)))
    found: dict[str, Include] = {}
    for match in _INCLUDE.finditer(text):
        path = match["path"]
        bare = path.rstrip(_TRAILING)
        line_start = text.rfind("\n", 0, match.start()) + 1
        line_end = text.find("\n", match.end())
        line = text[line_start : line_end if line_end >= 0 else len(text)]
        alone = line.strip().removeprefix("- ").strip() == f"@{path}"
        if bare:
            found.setdefault(path, Include(tuple(dict.fromkeys((path, bare))), alone))
    return tuple(found.values())


def _without_code_spans(text: str) -> str:
    """Return the text with each code span blanked: from a run of backticks to the next run of the same length.

    Runs are paired from the end in one pass; a regular expression would search the whole text for the partner of each
    run.
    """
    runs = list(_TICKS.finditer(text))
    partner: dict[int, re.Match[str]] = {}
    following: dict[int, re.Match[str]] = {}
    for run in reversed(runs):
        length = len(run[0])
        if length in following:
            partner[run.start()] = following[length]
        following[length] = run
    pieces, done = [], 0
    for run in runs:
        closing = partner.get(run.start())
        if run.start() >= done and closing is not None:
            pieces += [text[done : run.start()], " "]
            done = closing.end()
    return "".join((*pieces, text[done:]))
