"""Stores the exact words of a chat's evidence packets, each message once, one per line (R-468, R-478).

A file over 4 MB is reduced to its newest half.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codecompanion.errors import StoreCorrupt
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model import checkpoint as payloads
from codecompanion.store.durable_files import append_durably, write_durably

SPANS_BYTES = 4 * 1024 * 1024


class Spans:
    """Reads and writes the files of all chats below one folder; chats are named by `checkpoints.file_name`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, set[str]] = {}

    def path(self, chat: str) -> Path:
        """Return the path of the file with a chat's words."""
        return self.folder / f"{chat}.jsonl"

    def append(self, chat: str, spans: Sequence[Mapping[str, Any]]) -> None:
        """Add the words of a packet; each message is stored once.

        Raises:
            OSError: they could not be written.
        """
        path, known = self.path(chat), self._known.get(chat)
        if known is None:
            known = {str(span.get("objectId")) for span in self.load(chat)}
        fresh = [span for span in spans if span.get("objectId") not in known]
        if fresh:
            append_durably(path, b"\n".join((*payloads.encode_each(fresh), b"")))
        known.update(str(span.get("objectId")) for span in fresh)
        self._known[chat] = known
        if path.exists() and path.stat().st_size > SPANS_BYTES:
            _halve(path)

    def load(self, chat: str) -> list[dict[str, Any]]:
        """Return the stored words, oldest first, without lines that were truncated when a host was killed."""
        path = self.path(chat)
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [span for line in lines if (span := _decode_line(line)) is not None]

    def forget(self, chat: str) -> None:
        """Drop the cache of a chat whose file is being deleted."""
        self._known.pop(chat, None)


def _halve(path: Path) -> None:
    """Keep the newest half of the lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    kept, size = len(lines), 0
    while kept and size + len(lines[kept - 1]) <= SPANS_BYTES // 2:
        kept -= 1
        size += len(lines[kept])
    write_durably(path, b"".join(lines[kept:]))


def _decode_line(line: bytes) -> dict[str, Any] | None:
    with contextlib.suppress(*NOT_READABLE, StoreCorrupt):
        span = json.loads(line)
        return span if isinstance(span, dict) else None
    return None
