"""Reads a folder's branch from the repository's files, without git, so that a clone cannot start a program."""

from __future__ import annotations

from pathlib import Path

from codecompanion.formats.regex import regex
from codecompanion.workspace.git_repository import find_repository, read_start

_MAX_BYTES = 4_096
_BRANCH = regex(r"ref: refs/heads/([^\s\x00-\x1f\x7f~^:?*\[\\`]{1,200})")
_COMMIT = regex(r"([0-9a-f]{12})[0-9a-f]{28}(?:[0-9a-f]{24})?")
_REFTABLE = ".invalid"
"""Placeholder branch that `HEAD` names in a repository with refs in another format (reftable)."""


def read_head(folder: Path) -> str:
    """Return the current branch, `commit 1a2b3c4d5e6f` for a detached HEAD, "" outside a repository. Blocks."""
    try:
        repository = find_repository(folder)
        content = read_start(repository.git_dir / "HEAD", _MAX_BYTES) if repository else b""
    except OSError:
        return ""
    head = content.decode("utf-8", "replace").strip()
    branch = _BRANCH.fullmatch(head)
    if branch is not None:
        return "" if branch[1] == _REFTABLE else branch[1]
    commit = _COMMIT.fullmatch(head)
    return f"commit {commit[1]}" if commit else ""
