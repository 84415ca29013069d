"""What git says of the workspace: its branch and which files are changed; no contents (R-351, R-355).

Asks the git command, with a time limit, without taking locks, and without the hooks a foreign repository could bring
along. Where git cannot say, nothing is detected.
"""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

_log = logging.getLogger(__name__)

TIME_LIMIT_S = 2.0
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_STATUS = (*("status", "--porcelain=v1", "--branch", "-z", "--untracked-files=normal", "--ignore-submodules=all"),)
_ON_NO_COMMIT = "No commits yet on "


class GitStatus(msgspec.Struct, frozen=True):
    """The state of a working tree. `branch` "" = none; `changed` are (status code, path from the repository's root)."""

    branch: str = ""
    changed: tuple[tuple[str, str], ...] = ()


def read_status(root: Path, time_limit_s: float = TIME_LIMIT_S) -> GitStatus | None:
    """Return the state of the repository `root` lies in, None when there is none or it takes too long. Blocks."""
    try:
        output = read_git(root, _STATUS, time_limit_s)
    except (OSError, subprocess.SubprocessError) as error:
        _log.info("git could not be asked: %s", error)
        return None
    return parse_status(output.decode("utf-8", "replace"))


def read_git(folder: Path, arguments: Sequence[str], time_limit_s: float) -> bytes:
    """Return what git prints in a folder; it takes no locks, asks nobody and runs nothing of the repository's. Blocks.

    Raises:
        OSError: there is no git, or no such folder.
        subprocess.SubprocessError: git fails, as it does outside a repository, or takes longer than the limit.
    """
    done = subprocess.run(
        [*git_command(), *arguments],
        cwd=folder,
        env=git_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=time_limit_s,
        check=True,
    )
    return done.stdout


def git_command() -> tuple[str, ...]:
    """Return how git is called: without locks, without the hooks and the monitor a foreign repository could name."""
    return _GIT


def git_environment() -> dict[str, str]:
    """Return the environment of git: nothing in it points to another repository, nobody is asked."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**environment, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def parse_status(output: str) -> GitStatus:
    """Return what `git status --porcelain=v1 --branch -z` printed."""
    branch, changed = "", list[tuple[str, str]]()
    records = iter(output.split("\0"))
    for record in records:
        if record.startswith("## "):
            branch = _branch(record[3:])
        elif len(record) > 3:
            code = record[:2].strip()
            changed.append((code, record[3:]))
            if "R" in record[:2] or "C" in record[:2]:
                next(records, "")  # the path it had before
    return GitStatus(branch, tuple(changed))


def _branch(line: str) -> str:
    """Return the branch named in the header: `main...origin/main [ahead 1]`, `HEAD (no branch)`."""
    if line.startswith("HEAD (no branch)"):
        return ""
    line = line.removeprefix(_ON_NO_COMMIT)
    return line.split("...")[0].split(" [")[0]
