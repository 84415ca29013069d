"""`/diff`: what git sees changed, as text. Files that hold secrets by their name are named and left out (R-266)."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from codecompanion.errors import InputError
from codecompanion.formats.cutting import cut_line
from codecompanion.formats.text_files import printable
from codecompanion.workspace.git import read_git
from codecompanion.workspace.secret_files import is_secret

TIME_LIMIT_S = 10.0
MAX_CHARS = 400_000
_SHOWN = ("--no-color", "--no-ext-diff", "--no-textconv", "--relative", "--find-renames")
_HEAD = "--format=commit %H%nAuthor: %an%nDate:   %ad%n%n%B"
_MAIN = ("origin/HEAD", "main", "master", "origin/main", "origin/master", "trunk", "develop")
"""What a branch is compared with: the first of them that there is."""


async def read_diff(what: str, root: Path) -> tuple[str, str]:
    """Return how a diff is called, and the diff: staged, unstaged, of the branch, of a commit or range; "" = all.

    Raises:
        InputError: there is no repository or no such commit, git fails or is late, or nothing has changed.
    """
    try:
        return await asyncio.to_thread(_read, what.strip(), root)
    except subprocess.TimeoutExpired:
        raise InputError(f"Nothing was attached: git took longer than {TIME_LIMIT_S:.0f} s.") from None
    except subprocess.CalledProcessError as error:
        why = cut_line((error.stderr or b"").decode("utf-8", "replace").strip(), 200)
        if "not a git repository" in why.lower():
            why = f"{root} is in no git repository"
        raise InputError(f"Nothing was attached: {why or 'git failed'}.") from None
    except OSError as error:
        raise InputError(f"Nothing was attached: git cannot be run ({error.strerror or error}).") from None


def _git(root: Path, *arguments: str) -> str:
    return read_git(root, arguments, TIME_LIMIT_S).decode("utf-8", "replace")


def _read(what: str, root: Path) -> tuple[str, str]:
    _git(root, "rev-parse", "--git-dir")  # outside of a repository `git diff` is another command
    title, command, after = _command(what, root)
    names = _git(root, *command, "--name-only", "-z", *(("--format=",) if command[0] == "show" else ()), *after)
    changed = sorted({name for name in names.replace("\n", "\0").split("\0") if name})
    secret = [name for name in changed if is_secret(name)]
    excluded = [f":(exclude,literal){name}" for name in secret]
    head = (_HEAD,) if command[0] == "show" else ()
    text = _git(root, *command, *_SHOWN, *head, *after, *([".", *excluded] if excluded else []))
    if not what:
        text += "".join(f"new file, not tracked: {name}\n" for name in _untracked(root))
    text += "".join(f"changed, left out as a file of keys or passwords: {name}\n" for name in secret)
    if not text.strip():
        raise InputError(f"Nothing was attached: {'nothing is staged' if what == 'staged' else 'nothing has changed'}.")
    if len(text) > MAX_CHARS:
        text = text[:MAX_CHARS] + f"\n[cut here: {MAX_CHARS:,} of {len(text):,} characters]\n"
    return title, printable(text)


def _command(what: str, root: Path) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return title, command and what comes after its options."""
    match what:
        case "staged":
            return "staged", ("diff", "--cached"), ("--",)
        case "unstaged":
            return "unstaged", ("diff",), ("--",)
        case "branch":
            base = next((name for name in _MAIN if _is_commit(root, name)), "")
            if not base:
                raise InputError("Nothing was attached: no branch to compare with; there is no main and no master.")
            start = _git(root, "merge-base", base, "HEAD").strip()
            return f"since {base}", ("diff",), ("--end-of-options", start, "--")
        case "":
            if _is_commit(root, "HEAD"):
                return "not committed", ("diff",), ("HEAD", "--")
            return "not committed", ("diff", "--cached"), ("--",)
    ends = what.split("...") if "..." in what else what.split("..")
    if what.startswith("-") or any(not _is_commit(root, end or "HEAD") for end in ends):
        expected = "staged, unstaged, branch, a commit or a range of commits"
        raise InputError(f"Nothing was attached: {what} is no commit here; expected {expected}.")
    return what, ("diff",) if len(ends) > 1 else ("show",), ("--end-of-options", what, "--")


def _is_commit(root: Path, name: str) -> bool:
    try:
        _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except subprocess.CalledProcessError as error:
        if b"not a git repository" in (error.stderr or b"").lower():
            raise
        return False
    return True


def _untracked(root: Path) -> list[str]:
    names = _git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    return [name for name in names if name and not is_secret(name)][:100]
