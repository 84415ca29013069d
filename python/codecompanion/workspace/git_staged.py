"""What is staged, for the message of a commit: the diff, its figures, the newest subjects; no text of secrets (R-266).

`git commit` may have told its editor of another index (`git commit -a`), and of a repository it was pointed to. Both
are taken where they are what they should be; git gets nothing else of that environment (issue 20).
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
    """What is staged; `diff` "" = nothing is. `secret`: files that hold keys by their name, their text is left out."""

    diff: str = ""
    stat: str = ""
    subjects: str = ""
    secret: tuple[str, ...] = ()


def read_staged(folder: Path, index: str = "", git_dir: str = "", work_tree: str = "") -> Staged:
    """Return what is staged in the repository of a folder, or in the one that is named. Blocks.

    Raises:
        InputError: there is no repository, git fails or is late; says why, as half a sentence.
    """
    try:
        return _read(folder, index, git_dir, work_tree)
    except subprocess.TimeoutExpired:
        raise InputError("git did not answer in time") from None
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
        diff += f"diff --git a/{name} b/{name}\n(its text is left out: a file of keys or passwords)\n"
    stat = git(*_DIFF, "-M", "--stat=80")
    try:
        subjects = git("log", "-n", str(_SUBJECTS), "--no-merges", "--format=%s")
    except subprocess.CalledProcessError:  # no commit yet
        subjects = ""
    return Staged(diff, stat.strip(), subjects.strip(), secret)


def _repository(folder: Path, git_dir: str, work_tree: str) -> Repository | None:
    """Return the repository `git commit` works on; one that is named must have what a git directory has."""
    found = find_repository(folder)
    if git_dir:
        named = repository_at(Path(os.path.realpath(folder / work_tree)), folder / git_dir)
        if found is None or named.git_dir != found.git_dir:
            is_one = (named.git_dir / "HEAD").is_file() and (named.common_dir / "objects").is_dir()
            return named if is_one else found
    return found


def _index(repository: Repository, index: str) -> Path | None:
    """Return the index that is named, if it is a file of the git directory, None = the usual one."""
    named = repository.top / index
    if index and named.is_file() and Path(os.path.realpath(named)).parent == repository.git_dir:
        return named
    return None
