"""Caches fetched pages on disk, so that a URL is not fetched again for a while. Blocks.

Each URL has one file, named by the URL's sha256 and readable only by the user. Old or excess pages are deleted when
another page is stored. Nothing depends on the cache: an unusable cache is treated as empty.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from pathlib import Path

import msgspec

from codecompanion.formats import typed
from codecompanion.web.fetching import Fetched

FRESH_S = 3600.0
MAX_PAGES = 200
_log = logging.getLogger(__name__)


class Kept(msgspec.Struct, frozen=True):
    """A cached page, and the time at which it was fetched, in seconds since the epoch."""

    time: float
    page: Fetched


class PageCache:
    """Caches pages in a folder; without a folder (None), nothing is cached."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self, url: str, now: float | None = None) -> Kept | None:
        """Return a page that was fetched within the last hour."""
        if self._folder is None:
            return None
        try:
            kept = typed.read_msgpack(self._path(url).read_bytes(), type=Kept)
        except (OSError, msgspec.MsgspecError):
            return None
        age = (time.time() if now is None else now) - kept.time
        return kept if 0 <= age < FRESH_S else None

    def keep(self, url: str, page: Fetched, now: float | None = None) -> None:
        """Store a page; delete the oldest if there are too many."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._path(url)
            beside = path.with_suffix(f".{os.getpid()}.new")
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(msgspec.msgpack.encode(Kept(time.time() if now is None else now, page)))
            beside.replace(path)
            pages = sorted(self._folder.glob("*.page"), key=lambda one: one.stat().st_mtime)
            for old in pages[: max(0, len(pages) - MAX_PAGES)]:
                old.unlink(missing_ok=True)
        except OSError as error:
            _log.info("a page could not be kept: %s", error)

    def _path(self, url: str) -> Path:
        assert self._folder is not None  # noqa: S101  checked before
        return self._folder / f"{hashlib.sha256(url.encode()).hexdigest()}.page"
