"""Stores large content (images, whole tool results) once, under the SHA-256 of its bytes.

Blobs are files beside the database, not rows in it: by measurement, a 10 MB row takes twice as long (it is written to
the WAL and again to the database) and meanwhile blocks the writes of every Neovim; and files survive a damaged
database. A blob is on disk before `put` returns, so an event never names a missing blob.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from codecompanion.errors import StoreCorrupt, StoreError
from codecompanion.formats.regex import regex
from codecompanion.store.durable_files import write_durably
from codecompanion.store.sqlite_connection import translate_errors

FOLDER = "blobs"
_SHA256 = regex(r"[0-9a-f]{64}")


class Blobs:
    """The blob folder; None keeps the blobs in memory."""

    def __init__(self, folder: Path | None) -> None:
        """Use `folder`, which is created when the first blob is stored."""
        self._folder = folder
        self._in_memory: dict[str, bytes] = {}

    def put(self, content: bytes) -> str:
        """Store the bytes on disk and return their SHA-256 (hex). May be called from any thread.

        Raises:
            StoreUnavailable: the disk is full or the folder cannot be written; no partial file is left.
        """
        name = hashlib.sha256(content).hexdigest()
        if self._folder is None:
            self._in_memory[name] = content
            return name
        with translate_errors(self._folder):
            target = self._folder / name
            if target.exists() and target.stat().st_size == len(content):
                target.touch()  # keeps it from being deleted as unused before its next use
            else:
                self._folder.mkdir(mode=0o700, exist_ok=True)
                write_durably(target, content)
        return name

    def read(self, name: str) -> bytes:
        """Return the stored bytes.

        Raises:
            StoreError: the name is not a SHA-256.
            StoreCorrupt: the content is missing or changed.
        """
        if not _SHA256.fullmatch(name):
            raise StoreError(f"{name!r} is not the name of stored content; expected 64 hexadecimal digits")
        if self._folder is None:
            content = self._in_memory.get(name)
        else:
            with translate_errors(self._folder):
                path = self._folder / name
                content = path.read_bytes() if path.exists() else None
        if content is None:
            raise StoreCorrupt(f"the stored content {name[:12]}… is missing from {self._folder or 'memory'}")
        if hashlib.sha256(content).hexdigest() != name:
            raise StoreCorrupt(f"the stored content {name[:12]}… in {self._folder} is damaged")
        return content

    def names(self) -> Iterator[str]:
        """Yield the name of every blob, in no particular order; the folder is read lazily."""
        if self._folder is None:
            yield from list(self._in_memory)
        elif self._folder.is_dir():
            with os.scandir(self._folder) as entries:
                yield from (entry.name for entry in entries if _SHA256.fullmatch(entry.name))

    def stored_at(self, name: str) -> float:
        """Return when a blob was last stored (seconds since the epoch), or infinity if it does not exist."""
        if self._folder is None:
            return 0.0
        try:
            return (self._folder / name).stat().st_mtime
        except FileNotFoundError:
            return float("inf")

    def delete(self, name: str) -> None:
        """Delete an unused blob."""
        if self._folder is None:
            self._in_memory.pop(name, None)
        else:
            (self._folder / name).unlink(missing_ok=True)
