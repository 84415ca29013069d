"""Updates the code index from disk before a command answers.

Commands on the same project share an index, so a second command waits for the first; otherwise it would answer from a
partial index, and differently the next time.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from codecompanion.errors import CodeCompanionError, InputError
from codecompanion.session.code.indexing import Built, build
from codecompanion.workspace.paths import NOT_INDEXED, is_project
from codecompanion.workspace.project_files import Choice

PATIENCE_S = 600.0
_ASKED_EVERY_S = 0.1


def update_index(root: Path, path: Path, choice: Choice, *, is_rebuild: bool = False) -> Built:
    """Update the index at `path` from the folder `root`, waiting for another process that is building it. Blocks.

    Returns with `is_busy` if the other process takes more than ten minutes.

    Raises:
        InputError: the folder is not a project.
        StoreUnavailable: the index cannot be written; the message gives the reason.
    """
    if not is_project(root):
        raise InputError(NOT_INDEXED.format(root=root))
    built = build(root, path, choice, now_ns=time.time_ns, is_rebuild=is_rebuild)
    if built.is_busy:
        _say(f"another process is building the index of {root}; waiting for it")
    until = time.monotonic() + PATIENCE_S
    while built.is_busy and time.monotonic() < until:
        time.sleep(_ASKED_EVERY_S)
        built = build(root, path, choice, now_ns=time.time_ns, is_rebuild=is_rebuild)
    return built


def try_to_update_index(root: Path, path: Path, choice: Choice) -> None:
    """Update the index for a command that also works without one; report errors on standard error."""
    try:
        if update_index(root, path, choice).is_busy:
            _say(f"another process is still building the index of {root}; the answer uses the part that is ready")
    except (CodeCompanionError, OSError) as error:
        _say(f"working without an index: {error}")


def _say(text: str) -> None:
    print(f"codecompanion: {text}", file=sys.stderr)
