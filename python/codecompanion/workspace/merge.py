"""Merges text three-way with `git merge-file`: its results are familiar, and it needs no repository.

The pure-Python alternative (merge3) is GPL-licensed, which is incompatible with this project's licence. Without git, a
change can be reverted only if the text has not changed since; the user sees a note.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from codecompanion.workspace.git import MAX_BYTES, run_git_outside

TIME_LIMIT_S = 10.0
MAX_CONFLICTS = 127
"""Maximum number of conflicts that git's exit status can report; higher values are errors."""


class Merged(msgspec.Struct, frozen=True):
    """The merged text; with `conflicts` > 0 it has conflict markers. `problem`: why it could not be merged at all."""

    text: str
    conflicts: int = 0
    problem: str = ""


def merge(base: str, ours: str, theirs: str, labels: tuple[str, str, str]) -> Merged:
    """Return `ours` with the changes from `base` to `theirs`; `labels` name (ours, base, theirs) in the markers."""
    import tempfile  # slow to import, rarely needed

    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("ours", "base", "theirs")]
        for path, text in zip(paths, (ours, base, theirs), strict=True):
            Path(path).write_bytes(text.encode("utf-8", "surrogateescape"))
        named = [part for label in labels for part in ("-L", label)]
        try:
            ended = run_git_outside(
                Path(folder),
                ("merge-file", "--stdout", "--quiet", *named, *paths),
                time_limit_s=TIME_LIMIT_S,
                max_bytes=MAX_BYTES,
            )
        except FileNotFoundError:
            return Merged(ours, problem="git is needed to merge it with later changes but was not found")
        except OSError as error:
            return Merged(ours, problem=f"git could not merge it with later changes: {error}")
    if ended.stopped:
        return Merged(ours, problem="git could not merge it with later changes: it reached a limit")
    if not 0 <= ended.status <= MAX_CONFLICTS:
        reason = ended.errors.decode("utf-8", "replace").strip() or f"status {ended.status}"
        return Merged(ours, problem=f"git could not merge it with later changes: {reason}")
    return Merged(ended.output.decode("utf-8", "surrogateescape"), ended.status)
