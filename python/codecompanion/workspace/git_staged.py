"""Reads the staged changes for a commit message: diff, statistics and newest subjects, without secrets (R-266).

`git commit` may point its editor to another index (`git commit -a`) and to another repository. Both are used if they
are valid; git receives nothing else from that environment.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats.cutting import cut_line
from codecompanion.workspace.git import NO_REPOSITORY, read_git
from codecompanion.workspace.git_diff import diff_without_secrets
from codecompanion.workspace.git_repository import Repository, find_repository, repository_at
from codecompanion.workspace.secret_files import is_secret

TIME_LIMIT_S = 10.0
_SUBJECTS = 12
_DIFF = ("diff", "--cached", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short")


class Staged(msgspec.Struct, frozen=True):
    """The staged changes; `diff` is "" if there are none. `secret`: files named like secrets, which are left out."""

    diff: str = ""
    stat: str = ""
    subjects: str = ""
    secret: tuple[str, ...] = ()


def read_staged(folder: Path, index: str = "", git_dir: str = "", work_tree: str = "") -> Staged:
    """Return the staged changes in the repository of a folder, or in a given repository. Blocks.

    Raises: InputError: there is no repository, or git fails or times out; the message is a clause.
    """
    try:
        return _read(folder, index, git_dir, work_tree)
    except subprocess.TimeoutExpired:
        raise InputError("git timed out") from None
    except subprocess.CalledProcessError as error:
        why = (error.stderr or b"").decode("utf-8", "replace").strip().partition("\n")[0]
        raise InputError(cut_line(why, 200) or "git failed") from None
    except FileNotFoundError as error:
        raise InputError("git is not installed" if error.filename == "git" else str(error)) from None
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(str(error)) from None


def _read(folder: Path, index: str, git_dir: str, work_tree: str) -> Staged:
    repository = _repository(folder, git_dir, work_tree)
    if repository is None:
        raise subprocess.CalledProcessError(128, "git", stderr=b"fatal: " + NO_REPOSITORY)
    staged = _index(repository, index)

    def git(*arguments: str) -> str:
        output = read_git(repository.top, arguments, TIME_LIMIT_S, repository=repository, index=staged)
        return output.decode("utf-8", "replace")

    names = [name for name in git(*_DIFF, "--name-only", "--no-renames", "-z").split("\0") if name]
    if not names:
        return Staged()
    secret = tuple(name for name in names if is_secret(name))
    excluded = ("--", ":(top)", *(f":(top,exclude,literal){name}" for name in secret)) if secret else ()
    diff, withheld = diff_without_secrets(git(*_DIFF, "-M", *excluded))
    secret = (*secret, *withheld)
    for name in secret:
        diff += f"diff --git a/{name} b/{name}\n(text omitted: the file may contain keys or passwords)\n"
    stat = git(*_DIFF, "-M", "--stat=80")
    try:
        subjects = git("log", "-n", str(_SUBJECTS), "--no-merges", "--format=%s")
    except subprocess.CalledProcessError:  # there is no commit yet
        subjects = ""
    return Staged(diff, stat.strip(), subjects.strip(), secret)


def _repository(folder: Path, git_dir: str, work_tree: str) -> Repository | None:
    """Return the repository that `git commit` uses; a given repository must have the entries of a git directory."""
    found = find_repository(folder)
    if git_dir:
        named = repository_at(Path(os.path.realpath(folder / work_tree)), folder / git_dir)
        if found is None or named.git_dir != found.git_dir:
            is_one = (named.git_dir / "HEAD").is_file() and (named.common_dir / "objects").is_dir()
            return named if is_one else found
    return found


def _index(repository: Repository, index: str) -> Path | None:
    """Return the given index if it is a file in the git directory; None means the default index."""
    named = repository.top / index
    if index and named.is_file() and Path(os.path.realpath(named)).parent == repository.git_dir:
        return named
    return None
