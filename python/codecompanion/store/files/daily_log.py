"""Writes the daily log: decisions, open loops and next actions of compactions, one file per project and day (R-448).

The file is `.cowork/memory/YYYY-MM-DD.md` in a workspace that has `.cowork`, else a file in our state folder. A cloned
repository may contain its own `.cowork`, so symbolic links in it are not followed, and only regular files are read.
"""

from __future__ import annotations

import datetime
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from codecompanion.store.durable_files import remove_drafts, write_durably
from codecompanion.store.files.memory_places import DAILY_FOLDER, mark_of
from codecompanion.store.lease import FileLock
from codecompanion.store.sqlite_connection import make_private_folder, translate_errors

KIT = ".cowork"
MAX_BYTES = 1_000_000
"""Size in bytes from which a log is no longer rewritten; that day's log is then kept in the state folder instead."""


def kit_folder(root: Path) -> Path:
    """Return the folder of daily logs in a workspace that has `.cowork`."""
    return root / KIT / "memory"


_KEEP = "surrogateescape"
"""Error handler that preserves bytes that are not UTF-8."""


def daily_file(state_dir: Path, root: Path, day: str) -> Path:
    """Return the path of a workspace's daily log; `day` has the format YYYY-MM-DD."""
    kit, name = root / KIT, f"{day}.md"
    if _is_folder(kit) and os.access(kit, os.W_OK | os.X_OK) and _may_hold(kit_folder(root), name):
        return kit_folder(root) / name
    return state_dir / DAILY_FOLDER / mark_of(root) / name


def _may_hold(folder: Path, name: str) -> bool:
    """Return whether the log may be written in the folder: an existing file must not be a link, device or too large."""
    if not os.path.lexists(folder):
        return True
    if not _is_folder(folder):
        return False
    try:
        status = (folder / name).lstat()
    except FileNotFoundError:
        return True
    return stat.S_ISREG(status.st_mode) and status.st_size < MAX_BYTES


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def append_to_daily_log(
    state_dir: Path, root: Path, sections: Sequence[tuple[str, Sequence[str]]], now: float
) -> Path | None:
    """Add bullets below the headings of today's log and return its path, or None if there are no bullets.

    Raises:
        StoreUnavailable: the log could not be written.
    """
    from codecompanion.formats.sanitise import sanitise_memory  # not needed at startup

    bullets = [(heading, [_encodable(sanitise_memory(item, 1000)) for item in items]) for heading, items in sections]
    if not any(items for _, items in bullets):
        return None
    when = datetime.datetime.fromtimestamp(now).astimezone()
    path = daily_file(state_dir, root, f"{when:%Y-%m-%d}")
    with translate_errors(path):
        make_private_folder(state_dir)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        turn = FileLock(state_dir / "daily.lock")  # another Neovim may be adding to the same day
        try:
            before = path.read_text("utf-8", _KEEP) if path.exists() else ""
            remove_drafts(path.parent, is_locked=True)
            write_durably(path, add_bullets(before, bullets, f"{when:%H:%M}").encode("utf-8", _KEEP))
        finally:
            turn.release()
    return path


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def add_bullets(text: str, sections: Sequence[tuple[str, Sequence[str]]], clock: str) -> str:
    """Return the log with `- [flush HH:MM] …` inserted right after each heading; missing headings are appended."""
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
