"""Finds a project's files that contain given words, using ripgrep, or else git, or else by reading them (R-221).

It covers files that are not in the index yet. Words are matched literally, ignoring case. Only the project's own files
are returned. All functions block; `check` is called regularly, and may raise to stop.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from codecompanion.formats.find_program import find_program
from codecompanion.formats.text_files import decode
from codecompanion.workspace.bounded_process import Ended, run_bounded
from codecompanion.workspace.git import git_environment, run_git
from codecompanion.workspace.project_files import Choice, belongs, list_project_files, read_project_file

_log = logging.getLogger(__name__)

TIME_LIMIT_S = 60.0
MAX_OUTPUT_BYTES = 10 * 1024 * 1024
MAX_TERMS = 64

Check = Callable[[], None]
Searcher = Literal["ripgrep", "git", "walk"]


class FoundFiles(msgspec.Struct, frozen=True):
    """Sorted paths relative to the root, and the search program; `is_cut`: it reached a time or output limit."""

    paths: tuple[str, ...] = ()
    searcher: Searcher = "walk"
    is_cut: bool = False


def files_with(
    root: Path,
    terms: Sequence[str],
    choice: Choice | None = None,
    *,
    check: Check = lambda: None,
    time_limit_s: float = TIME_LIMIT_S,
) -> FoundFiles:
    """Return the files of the project that contain one of the terms, or no files if there are no terms."""
    wanted = [term for term in dict.fromkeys(term.strip() for term in terms) if term and "\n" not in term][:MAX_TERMS]
    choice = choice or Choice()
    if not wanted or not root.is_dir():
        return FoundFiles()
    deadline = time.monotonic() + time_limit_s
    searchers: tuple[tuple[Searcher, Callable[[], Ended]], ...] = (
        ("ripgrep", lambda: _ripgrep(root, wanted, choice, check, deadline)),
        ("git", lambda: _git_grep(root, wanted, check, deadline)),
    )
    for searcher, run in searchers:
        try:
            ended = run()
        except OSError as error:
            _log.info("%s cannot be run: %s", searcher, error)
            continue
        if ended.stopped or ended.status in (0, 1):
            names = ended.output.split(b"\0")
            paths = (os.fsdecode(name.removeprefix(b"./")) for name in (names[:-1] if ended.stopped else names) if name)
            own = sorted({path for path in paths if belongs(path, choice)})
            return FoundFiles(tuple(own), searcher, bool(ended.stopped))
        _log.info("%s could not search %s: exit status %s", searcher, root, ended.status)
    return _by_walk(root, wanted, choice, check, deadline)


def _ripgrep(root: Path, terms: Sequence[str], choice: Choice, check: Check, deadline: float) -> Ended:
    """Search with ripgrep, without the user's configuration, which may name a program that reads each file.

    Raises: OSError: ripgrep is missing.
    """
    options = ["--no-config", "--files-with-matches", "--null", "--ignore-case", "--fixed-strings", "--no-messages"]
    options += ["--no-require-git", f"--max-filesize={choice.max_bytes}"]
    options += ["--hidden"] if choice.include_hidden else []
    return run_bounded(
        (find_program("rg", root), *options, "--glob=!.git", *(f"--regexp={term}" for term in terms), "--", "."),
        folder=root,
        environment=git_environment(Path.home(), root),
        time_limit_s=deadline - time.monotonic(),
        max_bytes=MAX_OUTPUT_BYTES,
        check=check,
    )


def _git_grep(root: Path, terms: Sequence[str], check: Check, deadline: float) -> Ended:
    options = ("grep", "-l", "-z", "-i", "-F", "-I", "--untracked", "--exclude-standard", "--no-color")
    return run_git(
        root,
        (*options, *(part for term in terms for part in ("-e", term)), "--", "."),
        time_limit_s=deadline - time.monotonic(),
        max_bytes=MAX_OUTPUT_BYTES,
        check=check,
    )


def _by_walk(root: Path, terms: Sequence[str], choice: Choice, check: Check, deadline: float) -> FoundFiles:
    wanted = [term.casefold() for term in terms]
    found: list[str] = []
    for path in list_project_files(root, choice, check).paths:
        check()
        if time.monotonic() > deadline:
            return FoundFiles(tuple(found), "walk", is_cut=True)
        read = read_project_file(root, path, choice)
        if not read.why_not:
            text = decode(read.content).text.casefold()
            if any(term in text for term in wanted):
                found.append(path)
    return FoundFiles(tuple(found), "walk")
