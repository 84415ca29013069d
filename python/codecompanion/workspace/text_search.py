"""Which files of a project contain one of some words, as text: ripgrep, else git, else the walk (R-221).

What the index does not know yet is found this way. Words are taken literally, case does not matter. Only files that
belong to the project are named. Everything blocks; `check` is called now and then, and may raise to stop.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from codecompanion.formats.text_files import decode
from codecompanion.workspace.git import git_command, git_environment
from codecompanion.workspace.project_files import Choice, belongs, list_project_files, read_project_file

_log = logging.getLogger(__name__)

TIME_LIMIT_S = 60.0
MAX_OUTPUT_BYTES = 10 * 1024 * 1024
MAX_TERMS = 64
_CHECK_EVERY_S = 0.05

Check = Callable[[], None]
Searcher = Literal["ripgrep", "git", "walk"]


class FoundFiles(msgspec.Struct, frozen=True):
    """Paths relative to the root, sorted; who found them; `is_cut`: the time or the output ended before the search."""

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
    """Return the files of the project that contain one of the terms; none for no terms."""
    wanted = [term for term in dict.fromkeys(term.strip() for term in terms) if term and "\n" not in term][:MAX_TERMS]
    choice = choice or Choice()
    if not wanted or not root.is_dir():
        return FoundFiles()
    deadline = time.monotonic() + time_limit_s
    for searcher, argv in (("ripgrep", _ripgrep(wanted, choice)), ("git", _git_grep(wanted))):
        if argv:
            output, code = _run(argv, root, check, deadline)
            if code in (0, 1, None):
                names = output.split(b"\0")
                is_cut = code is None
                paths = (os.fsdecode(name.removeprefix(b"./")) for name in (names[:-1] if is_cut else names) if name)
                own = sorted({path for path in paths if belongs(path, choice)})
                return FoundFiles(tuple(own), "ripgrep" if searcher == "ripgrep" else "git", is_cut)
            _log.info("%s could not search %s: exit status %s", searcher, root, code)
    return _by_walk(root, wanted, choice, check, deadline)


def _ripgrep(terms: Sequence[str], choice: Choice) -> list[str]:
    """Return the command, [] where there is no ripgrep. It reads no configuration of the user's."""
    program = shutil.which("rg")
    if not program:
        return []
    options = ["--no-config", "--files-with-matches", "--null", "--ignore-case", "--fixed-strings", "--no-messages"]
    options += ["--no-require-git", f"--max-filesize={choice.max_bytes}"]
    options += ["--hidden"] if choice.include_hidden else []
    return [program, *options, "--glob=!.git", *(f"--regexp={term}" for term in terms), "--", "."]


def _git_grep(terms: Sequence[str]) -> list[str]:
    options = ["grep", "-l", "-z", "-i", "-F", "-I", "--untracked", "--exclude-standard", "--no-color"]
    return [*git_command(), *options, *(part for term in terms for part in ("-e", term)), "--", "."]


def _run(argv: Sequence[str], root: Path, check: Check, deadline: float) -> tuple[bytes, int | None]:
    """Return what a program printed and its exit status; None: it was stopped at the limit, its output is a part."""
    try:
        process = subprocess.Popen(
            argv,
            cwd=root,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        _log.info("%s cannot be run: %s", argv[0], error)
        return b"", 127
    with process:
        assert process.stdout is not None  # noqa: S101 - asked for above
        os.set_blocking(process.stdout.fileno(), False)
        chunks, size = list[bytes](), 0
        try:
            for chunk in _output(process, check):
                chunks.append(chunk)
                size += len(chunk)
                if size > MAX_OUTPUT_BYTES or time.monotonic() > deadline:
                    return b"".join(chunks), None
            return b"".join(chunks), process.wait()
        finally:
            if process.poll() is None:
                process.kill()


def _output(process: subprocess.Popen[bytes], check: Check) -> Iterator[bytes]:
    """Yield what comes, b"" when nothing came for a while, until the end."""
    from select import select

    assert process.stdout is not None  # noqa: S101
    handle = process.stdout.fileno()
    while True:
        check()
        if not select([handle], [], [], _CHECK_EVERY_S)[0]:
            yield b""
            continue
        chunk = os.read(handle, 1 << 16)
        if not chunk:
            return
        yield chunk


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
