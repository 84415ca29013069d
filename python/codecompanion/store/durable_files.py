"""Writes files beside the database: completely or not at all, private, and flushed to disk on return (lesson 44).

A draft is written beside the target, flushed and renamed over it; then the folder is flushed. A process killed at any
moment leaves the old or the new file, and at worst an unused draft (`remove_drafts`).
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from pathlib import Path

DRAFT_SUFFIX = ".new"
DRAFT_AGE_S = 3_600.0


def write_durably(target: Path, content: bytes, *, also: Path | None = None) -> None:
    """Write the file with mode 0600; `also` becomes a hard link to it, created first.

    Raises:
        OSError: nothing was replaced; `also` may exist.
    """
    write_whole(target, content, also=also)


def write_whole(target: Path, content: bytes, *, also: Path | None = None, flush: bool = True) -> None:
    """Write the file like `write_durably`; without `flush` a power cut may leave an older file, or an empty one.

    Raises:
        OSError: nothing was replaced; `also` may exist.
    """
    draft = target.with_name(f"{target.name}.{uuid.uuid4().hex}{DRAFT_SUFFIX}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            if flush:
                os.fsync(file.fileno())
        if also is not None:
            _add_name(draft, also, content)
        draft.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    if flush:
        flush_folder(target.parent)


def _add_name(draft: Path, also: Path, content: bytes) -> None:
    try:
        os.link(draft, also)
        flush_folder(also.parent)
    except FileExistsError:
        return  # the name identifies the content, so it is already stored
    except OSError:  # a file system without links
        write_durably(also, content)


def append_durably(target: Path, content: bytes) -> None:
    """Append to the file (created with mode 0600) and flush it; a line left incomplete by a kill is ended first.

    Raises:
        OSError: only part of it may have been written.
    """
    is_new = not target.exists()
    with os.fdopen(os.open(target, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            content = content if file.read(1) == b"\n" else b"\n" + content
            file.seek(0, os.SEEK_END)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        flush_folder(target.parent)


def flush_folder(folder: Path) -> None:
    """Make changes to the names in a folder durable."""
    if os.name != "posix":  # only POSIX can open and flush a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_drafts(folder: Path, *, is_locked: bool = False) -> None:
    """Delete the drafts of killed processes.

    A recent draft may still be in use, unless `is_locked`, which means that the caller holds the lock that all writers
    there use. Other files in the folder may be the user's own and are kept.
    """
    for draft in folder.glob(f"*.{'[0-9a-f]' * 32 if is_locked else '*'}{DRAFT_SUFFIX}"):
        with contextlib.suppress(OSError):
            if is_locked or time.time() - draft.stat().st_mtime > DRAFT_AGE_S:
                draft.unlink()
