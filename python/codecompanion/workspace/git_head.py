"""The branch a folder is on, read from the files of the repository: git is not run, so nothing of a clone can be."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from codecompanion.formats.regex import regex

_MAX_BYTES = 4_096
_BRANCH = regex(r"ref: refs/heads/([^\s\x00-\x1f\x7f~^:?*\[\\`]{1,200})")
_COMMIT = regex(r"([0-9a-f]{12})[0-9a-f]{28}(?:[0-9a-f]{24})?")
_REFTABLE = ".invalid"
"""What `HEAD` names where a repository keeps its refs in another format."""
_GITDIR = regex(r"gitdir: ([^\n]+)")


def read_head(folder: Path) -> str:
    """Return the branch that is checked out, `commit 1a2b3c4d5e6f` without one, "" outside a repository. Blocks."""
    try:
        real = folder.resolve()
        found = next((one / ".git" for one in (real, *real.parents) if os.path.lexists(one / ".git")), None)
        if found is None:
            return ""
        if not found.is_dir():  # a worktree or a submodule
            named = _GITDIR.match(_read_start(found))
            if named is None:
                return ""
            found = found.parent / named[1].strip()
        head = _read_start(found / "HEAD").strip()
    except (OSError, ValueError, RuntimeError):
        return ""
    branch = _BRANCH.fullmatch(head)
    if branch is not None:
        return "" if branch[1] == _REFTABLE else branch[1]
    commit = _COMMIT.fullmatch(head)
    return f"commit {commit[1]}" if commit else ""


def _read_start(path: Path) -> str:
    """Return the start of a regular file; a pipe must not make anybody wait.

    Raises:
        OSError: there is no such file, or it is something else.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is not a regular file")
        return os.read(handle, _MAX_BYTES).decode("utf-8", "replace")
    finally:
        os.close(handle)
