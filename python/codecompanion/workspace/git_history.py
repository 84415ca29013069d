"""Reads recent commits and their files from git, for ranking.

It runs one `git log` without diffs, limited in commits and time. If git fails, the history is empty.
"""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path

import msgspec

from codecompanion.workspace.git import read_git

_log = logging.getLogger(__name__)

MAX_COMMITS = 300
MAX_FILES_OF_A_COMMIT = 50
TIME_LIMIT_S = 3.0
_START = "\x01"


class Commit(msgspec.Struct, frozen=True):
    """A commit: time (seconds since the epoch), the first line of its message, and the changed files below the root."""

    time: int
    subject: str
    paths: tuple[str, ...]


def read_head(root: Path, time_limit_s: float = TIME_LIMIT_S) -> str:
    """Return the id of the current commit, or ""; it is the cache key of the history. Blocks."""
    return _read(root, ("rev-parse", "HEAD"), time_limit_s).strip()


def recent_commits(root: Path, count: int = MAX_COMMITS, time_limit_s: float = TIME_LIMIT_S) -> list[Commit]:
    """Return the last commits, newest first; commits that change very many files list none. Blocks."""
    arguments = (
        *("log", f"--max-count={count}", "--no-merges", "--no-renames", "--no-ext-diff", "--no-textconv"),
        *("--diff-filter=AMR", "--name-only", "--relative", "-z", f"--format={_START}%ct %s", "--", "."),
    )
    return parse_log(_read(root, arguments, time_limit_s))


def parse_log(output: str) -> list[Commit]:
    """Parse the output of `git log -z --name-only --format=<start>%ct %s`."""
    commits = []
    for record in output.split(_START)[1:]:
        head, *names = record.split("\0")
        time, _, subject = head.partition(" ")
        paths = tuple(name.lstrip("\n") for name in names if name.strip())
        commits.append(Commit(int(time), subject, paths if len(paths) <= MAX_FILES_OF_A_COMMIT else ()))
    return commits


def _read(root: Path, arguments: tuple[str, ...], time_limit_s: float) -> str:
    try:
        return read_git(root, arguments, time_limit_s).decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError) as error:
        _log.info("git has no history of %s: %s", root, error)
        return ""
