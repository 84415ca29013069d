"""Removes temporary files of sandboxed commands and killed hosts that have not been used for days.

Commands use `<data>/sandbox/*/tmp`. Git, probes and a host without a data folder create a folder in the system's
temporary folder, and remove it unless the host is killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

from codecompanion.formats.regex import regex

KEPT_S = 10 * 86_400.0
"""Seconds without use before removal, as for systemd's /tmp (`tmp.conf`)."""
_OWN = regex(r"codecompanion-(?:git|probe|sandbox)-[a-z0-9_]{8}")


def remove_old_temporary_files(data_dir: Path, temporary: Path | None = None, now: float | None = None) -> int:
    """Remove files unused for `KEPT_S` seconds and return how many were removed. Blocks, never raises."""
    oldest, removed = (time.time() if now is None else now) - KEPT_S, 0
    kept = temporary or Path(tempfile.gettempdir())
    found = [entry for entry in _entries(kept) if _OWN.fullmatch(entry.name)]
    if data_dir.is_absolute():
        found += [entry for folder in _entries(data_dir / "sandbox") for entry in _entries(folder / "tmp")]
    for entry in found:
        with contextlib.suppress(OSError):
            if entry.lstat().st_uid != os.geteuid() or _last_used(entry) > oldest:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)  # does not follow symlinks
            else:
                entry.unlink()
            removed += 1
    return removed


def _entries(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []


def _last_used(top: Path) -> float:
    """Return the latest timestamp of a file or tree, ignoring folder access times, which this walk updates."""
    newest = 0.0
    for path in (top, *(Path(folder, name) for folder, names, files in os.walk(top) for name in (*names, *files))):
        found = path.lstat()
        newest = max(newest, found.st_mtime, found.st_ctime, 0.0 if stat.S_ISDIR(found.st_mode) else found.st_atime)
    return newest
