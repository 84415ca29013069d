"""Reads diffs as text: of staged or unstaged changes, a branch, a commit or a range of commits.

Files that are secrets by name are left out and listed (R-266), because the user did not ask for them by name.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats.cutting import cut_line
from codecompanion.formats.regex import regex
from codecompanion.workspace.git import read_git
from codecompanion.workspace.secret_files import is_secret
from codecompanion.workspace.secret_text import hide_secrets, without_secrets

TIME_LIMIT_S = 10.0
KINDS = ("staged", "unstaged", "branch")
"""The named types of diff; "" means all uncommitted changes, and any other value is a commit or a range of commits."""
_SHOWN = ("--no-color", "--no-ext-diff", "--no-textconv", "--relative", "--find-renames", "--submodule=short")
_HEAD = "--format=commit %H%nAuthor: %an%nDate:   %ad%n%n%B"
_FILES = regex(r"^(?=diff --(?:git|cc|combined) )", re.MULTILINE)
_NAME = regex(r"\Adiff --(?:git a/.{1,4096} b/|cc |combined )(.{1,4096})$", re.MULTILINE)
_MAIN = ("origin/HEAD", "main", "master", "origin/main", "origin/master", "trunk", "develop")
"""Candidates for the branch to compare with; the first that exists is used."""


class Diff(msgspec.Struct, frozen=True):
    """A diff below a folder. `title`: `staged`, `since main` or a commit.

    `secret`: changed and new files that were left out. `untracked`: other untracked files; empty for staged changes, a
    commit or a range.
    """

    title: str
    text: str
    secret: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything has changed."""
        return bool(self.text.strip() or self.secret or self.untracked)

    @property
    def nothing(self) -> str:
        """Return the message for an empty diff."""
        return "nothing is staged" if self.title == "staged" else "nothing has changed"


class _Command(msgspec.Struct, frozen=True):
    """A git call: the title of its diff, the command, and the arguments after its options."""

    title: str
    command: tuple[str, ...]
    after: tuple[str, ...]
    has_untracked: bool = False


def read_diff(root: Path, what: str) -> Diff:
    """Return a diff of one of `KINDS`, a commit or a range; "" means everything uncommitted. Blocks.

    Raises: InputError: the repository or the commit does not exist, or git fails or times out; the message is a clause.
    """
    try:
        return _read(root, what.strip())
    except subprocess.TimeoutExpired:
        raise InputError(f"git took longer than {TIME_LIMIT_S:.0f} s") from None
    except subprocess.CalledProcessError as error:
        why = cut_line((error.stderr or b"").decode("utf-8", "replace").strip(), 200)
        if "not a git repository" in why.lower():
            why = f"{root} is not in a git repository"
        raise InputError(why or "git failed") from None
    except OSError as error:
        raise InputError(f"git cannot be run: {error.strerror or error}") from None


def _git(root: Path, *arguments: str) -> str:
    return read_git(root, arguments, TIME_LIMIT_S).decode("utf-8", "replace")


def _read(root: Path, what: str) -> Diff:
    _git(root, "rev-parse", "--git-dir")  # because outside a repository `git diff` is a different command
    asked = _command(root, what)
    head = (_HEAD,) if asked.command[0] == "show" else ()
    # Both names of a renamed file, relative to the top of the repository rather than to the folder.
    names = _git(root, *asked.command, "--name-only", "--no-renames", "-z", *("--format=" for _ in head), *asked.after)
    changed = sorted({name for name in names.replace("\n", "\0").split("\0") if name})
    secret = tuple(name for name in changed if is_secret(name))
    excluded = [f":(top,exclude,literal){name}" for name in secret]
    text = _git(root, *asked.command, *_SHOWN, *head, *asked.after, *([".", *excluded] if excluded else []))
    text, withheld = diff_without_secrets(text)
    secret = (*secret, *withheld)
    untracked = _untracked(root) if asked.has_untracked else ()
    hidden = tuple(name for name in untracked if is_secret(name))
    return Diff(asked.title, text, (*secret, *hidden), tuple(name for name in untracked if name not in hidden))


def diff_without_secrets(diff: str) -> tuple[str, tuple[str, ...]]:
    """Return the diff without secrets, and the files left out because their text contains secrets."""
    parts, withheld = list[str](), list[str]()
    for part in _FILES.split(diff):
        name = _NAME.search(part)
        text, why = without_secrets(part, name[1]) if name else (hide_secrets(part), "")
        if name is not None and why:
            withheld.append(name[1])
        else:
            parts.append(text)
    return "".join(parts), tuple(withheld)


def _command(root: Path, what: str) -> _Command:
    match what:
        case "staged":
            return _Command("staged", ("diff", "--cached"), ("--",))
        case "unstaged":
            return _Command("unstaged", ("diff",), ("--",), has_untracked=True)
        case "branch":
            base = next((name for name in _MAIN if _is_commit(root, name)), "")
            if not base:
                raise InputError("no branch to compare with: neither main nor master exists")
            start = _git(root, "merge-base", base, "HEAD").strip()
            return _Command(f"since {base}", ("diff",), ("--end-of-options", start, "--"), has_untracked=True)
        case "":
            compared = ("diff",) if _is_commit(root, "HEAD") else ("diff", "--cached")
            after = ("HEAD", "--") if compared == ("diff",) else ("--",)
            return _Command("not committed", compared, after, has_untracked=True)
    ends = what.split("...") if "..." in what else what.split("..")
    if what.startswith("-") or any(not _is_commit(root, end or "HEAD") for end in ends):
        expected = f"{', '.join(KINDS)}, a commit or a range of commits"
        raise InputError(f"{what} is not a commit here; expected {expected}")
    return _Command(what, ("diff",) if len(ends) > 1 else ("show",), ("--end-of-options", what, "--"))


def _is_commit(root: Path, name: str) -> bool:
    try:
        _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except subprocess.CalledProcessError as error:
        if b"not a git repository" in (error.stderr or b"").lower():
            raise
        return False
    return True


def _untracked(root: Path) -> tuple[str, ...]:
    names = _git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    return tuple(filter(None, names))
