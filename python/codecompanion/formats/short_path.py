"""Shortens paths for display."""

from __future__ import annotations

from pathlib import Path


def short_path(path: Path) -> str:
    """Return a path for display: `~` replaces the home folder."""
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if home in path.parents else str(path)
