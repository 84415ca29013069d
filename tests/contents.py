"""Reads the files below a folder, which a program that is still running may replace meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def contents_below(root: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield each file with its bytes; a temporary file that disappears before it is read is skipped."""
    for path in root.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()
