"""The daily log: decisions, open loops and next actions of compactions, one file per project and day (R-448).

It is `.cowork/memory/YYYY-MM-DD.md` in a workspace that has `.cowork`, else a file in our state folder.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from pathlib import Path

from codecompanion.store.durable_files import write_durably
from codecompanion.store.files.memory_places import DAILY_FOLDER, mark_of
from codecompanion.store.lease import FileLock
from codecompanion.store.sqlite_connection import make_private_folder, told_as_ours

KIT = ".cowork"


def kit_folder(root: Path) -> Path:
    """Return the folder of daily logs in a workspace that has `.cowork`."""
    return root / KIT / "memory"


def daily_folder(state_dir: Path, root: Path) -> Path:
    """Return the folder that a daily log of the workspace is written to."""
    kit = root / KIT
    if kit.is_dir() and os.access(kit, os.W_OK | os.X_OK):
        return kit_folder(root)
    return state_dir / DAILY_FOLDER / mark_of(root)


def append_to_daily_log(
    state_dir: Path, root: Path, sections: Sequence[tuple[str, Sequence[str]]], now: float
) -> Path | None:
    """Add bullets below the headings of today's log; None when there is nothing to write.

    Raises:
        StoreUnavailable: it could not be written.
    """
    from codecompanion.formats.sanitise import sanitise_memory  # not part of the start

    bullets = [(heading, [sanitise_memory(item, 1000) for item in items]) for heading, items in sections]
    if not any(items for _, items in bullets):
        return None
    when = datetime.datetime.fromtimestamp(now).astimezone()
    folder = daily_folder(state_dir, root)
    path = folder / f"{when:%Y-%m-%d}.md"
    with told_as_ours(path):
        make_private_folder(state_dir)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        turn = FileLock(state_dir / "daily.lock")  # another Neovim may be adding to the same day
        try:
            before = path.read_text("utf-8") if path.exists() else ""
            write_durably(path, add_bullets(before, bullets, f"{when:%H:%M}").encode("utf-8", "replace"))
        finally:
            turn.release()
    return path


def add_bullets(text: str, sections: Sequence[tuple[str, Sequence[str]]], clock: str) -> str:
    """Return the log with `- [flush HH:MM] …` right after each heading; a heading that is missing is appended."""
    lines = text.splitlines()
    for heading, items in sections:
        fresh = [f"- [flush {clock}] {' '.join(item.split())}" for item in items if item.strip()]
        if not fresh:
            continue
        title = f"## {heading}"
        at = next((index for index, line in enumerate(lines) if line.strip().lower() == title.lower()), None)
        if at is None:
            lines += [*([""] if lines and lines[-1].strip() else []), title, *fresh]
        else:
            lines[at + 1 : at + 1] = fresh
    return "\n".join(lines) + "\n"
