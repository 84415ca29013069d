"""Finds the lines that recent commits changed, as line numbers in the newest commit, for ranking (our own method).

It runs one `git log` with diffs but without context lines, limited in commits and time. Later commits move lines; each
changed range is carried forward through their hunks. Merged branches are read as one sequence of commits, so ranges may
be off by a few lines there, as in files with uncommitted changes.
"""

from __future__ import annotations

import bisect
import logging
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.workspace.git import read_git

_log = logging.getLogger(__name__)

MAX_COMMITS = 100
"""Maximum number of commits to read; 300 gave no better results in two of three repositories and took 3 times as long.
"""
TIME_LIMIT_S = 1.5
EDITS_LOG = (
    *("log", "--no-merges", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--diff-filter=AMR"),
    *("--patch", "--unified=0", "--format=\x01%s", "--src-prefix=a/", "--dst-prefix=b/"),
)
"""Arguments for git to produce the output that `parse_edits` reads."""
_HUNK = regex(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_FILE = "+++ b/"

Run = tuple[int, int]
"""The first and last line of a range."""
_Hunk = tuple[int, int, int, int]
"""A hunk: first line and number of lines, before and after."""


class Edits(msgspec.Struct, frozen=True):
    """The changes of one commit: the first line of its message, and the changed lines by path, with current numbers."""

    subject: str
    lines: Mapping[str, tuple[Run, ...]]


def recent_edits(root: Path, count: int = MAX_COMMITS, time_limit_s: float = TIME_LIMIT_S) -> list[Edits]:
    """Return the changes that the last commits made below the root, newest first; [] if git fails. Blocks."""
    try:
        output = read_git(root, (*EDITS_LOG, f"--max-count={count}", "--relative", "--", "."), time_limit_s)
    except (OSError, subprocess.SubprocessError) as error:
        _log.info("git has no diffs of %s: %s", root, error)
        return []
    return parse_edits(output.decode("utf-8", "replace"))


def parse_edits(output: str) -> list[Edits]:
    """Parse the output of git with `EDITS_LOG`, newest commit first."""
    later, found = defaultdict[str, list[list[_Hunk]]](list), list[Edits]()
    for subject, hunks in _commits(output):
        lines = dict[str, tuple[Run, ...]]()
        for path, of_file in hunks.items():
            runs = [(start, start + max(count, 1) - 1) for _, _, start, count in of_file]
            for moves in reversed(later[path]):
                runs = [(_moved(moves, start), _moved(moves, end)) for start, end in runs]
            lines[path] = tuple((start, max(start, end)) for start, end in runs)
            later[path].append(of_file)
        found.append(Edits(subject, lines))
    return found


def _commits(output: str) -> Iterator[tuple[str, Mapping[str, list[_Hunk]]]]:
    """Yield the subject of each commit, and its hunks by path."""
    subject: str | None = None
    hunks, path, inside = dict[str, list[_Hunk]](), "", 0
    for line in output.split("\n"):
        if inside and line[:1] in ("+", "-"):
            inside -= 1
        elif line.startswith("\x01"):
            if subject is not None:
                yield subject, hunks
            subject, hunks, path = line[1:], {}, ""
        elif line.startswith("diff --git "):
            path = ""
        elif line.startswith(_FILE):
            path = line.removeprefix(_FILE).removesuffix("\t")
        elif path and (hunk := _HUNK.match(line)):
            start, count, new_start, new_count = hunk.groups()
            numbers = (int(start), int(count or 1), int(new_start), int(new_count or 1))
            inside = numbers[1] + numbers[3]
            hunks.setdefault(path, []).append(numbers)
    if subject is not None:
        yield subject, hunks


def _moved(hunks: Sequence[_Hunk], line: int) -> int:
    """Return a line's number after a commit's hunks are applied; a replaced line maps to one of its replacements."""
    place = bisect.bisect_right(hunks, line, key=lambda hunk: hunk[0] if hunk[1] else hunk[0] + 1) - 1
    if place < 0:
        return line
    start, count, new_start, new_count = hunks[place]
    if line < start + count:
        return max(1, min(new_start + line - start, new_start + max(new_count, 1) - 1))
    after = start + count if count else start + 1
    return line - after + (new_start + new_count if new_count else new_start + 1)
