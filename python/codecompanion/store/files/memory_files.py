"""Reads, writes and deletes the memory files: summaries that outlive a chat (R-446…R-449).

A summary is a Markdown file; if it looks sensitive, it is stored in a folder that no tool reads. The newest 200 of
each project are kept. The text is sanitised when written (R-242), and models read it as data. All functions block; any
thread may call them.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from codecompanion.errors import InputError, StoreError
from codecompanion.formats.regex import regex
from codecompanion.model.messages import Source
from codecompanion.store.durable_files import remove_drafts, write_durably
from codecompanion.store.files.daily_log import append_to_daily_log
from codecompanion.store.files.memory_places import DAILY_FOLDER, PRIVATE_FOLDER, MemoryFile, MemoryPlaces
from codecompanion.store.lease import FileLock
from codecompanion.store.sqlite_connection import make_private_folder, translate_errors

MAX_CHARS, KEPT_FILES = 10_000, 200
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
MAX_UNDO_BYTES, MAX_UNDO = 1_000_000, 50
"""Maximum size in bytes of a deleted file kept for undo, and maximum number of such files."""
MemoryKind = Literal["summary", "flush"]
_NO_MEMORY = regex(
    r"<\s*/?\s*no[-_ ]?memory\s*/?\s*>|[\[#@]no[-_]?memory\b|\bno[-_]memory\s*:\s*(?:true|yes)\b"
    r"|\b(?:do not|don't|never)\s+(?:remember|memori[sz]e|save)\s+(?:this|any of this|this (?:chat|conversation))\b",
    re.IGNORECASE,
)
_SENSITIVE = regex(
    r"\b(?:pass(?:word|phrase|wd)|secret|credential|private key|api[-_ ]?key|access[-_ ]?token|bearer|ssn|iban"
    r"|credit card|salary|diagnos(?:is|ed)|medical|passport)\b|\[hidden\]|-----BEGIN|\b(?:\d[ -]?){13,19}\b"
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+\.[a-z]{2,}",
    re.IGNORECASE,
)


def compile_exclusions(patterns: Sequence[str], key: str) -> tuple[re.Pattern[str], ...]:
    """Compile the user's exclusion patterns (regular expressions, case-insensitive).

    Raises:
        InputError: a pattern is not a valid regular expression; names the option and the pattern.
    """
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern, re.IGNORECASE | re.MULTILINE))
        except re.error as error:
            raise InputError(f"{key}: {pattern!r} is not a regular expression ({error})") from error
    return tuple(compiled)


def why_refused(texts: Sequence[str], exclusions: Sequence[re.Pattern[str]]) -> str:
    """Return why these texts may not be remembered (R-449), or "" if they may.

    `texts` are the summary and the user's own words, because a summariser may have dropped a request not to remember.
    """
    if any(_NO_MEMORY.search(text) for text in texts):
        return "the chat says not to remember it"
    matching = next((one.pattern for one in exclusions if any(one.search(text) for text in texts)), None)
    return f"it matches the exclusion {matching!r}" if matching is not None else ""


def looks_sensitive(text: str) -> bool:
    """Return whether the text should be hidden from later chats (R-449)."""
    return bool(_SENSITIVE.search(text))


class DeletedFile(msgspec.Struct, frozen=True):
    """A deleted memory file; `time`: last written (seconds since the epoch); `sources`: those of its text."""

    path: Path
    content: bytes
    time: float
    sources: tuple[Source, ...] = ()


def _no_sources(_: object) -> None:
    """Record nothing."""


class MemoryFiles:
    """Writes, reads and deletes the memory files (`memory_places`)."""

    def __init__(self, memory_dir: Path, state_dir: Path) -> None:
        self.places = MemoryPlaces(memory_dir, state_dir)
        self._deleted = deque[DeletedFile](maxlen=MAX_UNDO)

    def save(
        self,
        kind: MemoryKind,
        title: str,
        text: str,
        chat_id: str,
        now: float,
        project: str,
        before: Callable[[Path], None] = _no_sources,
    ) -> Path:
        """Save a summary of at most 10,000 characters for the project with this mark; return the file.

        `before(path)` records the sources of the text, which must survive even if the host is killed.

        Raises:
            StoreUnavailable: it could not be written.
        """
        from codecompanion.formats.sanitise import sanitise_memory  # not needed at startup

        clean, heading = sanitise_memory(text, MAX_CHARS), " ".join(sanitise_memory(title, 200).split()) or "(untitled)"
        folder = self.places.summaries(project, private=looks_sensitive(clean))
        when = datetime.datetime.fromtimestamp(now).astimezone()
        tail = hashlib.sha256(f"{chat_id}:{kind}:{clean}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        path = folder / f"{when:%Y-%m-%d-%H%M%S}-{kind}-{tail}.md"
        content = f"# {heading}\n\n<!-- {kind} of chat {chat_id}, {when:%Y-%m-%d %H:%M} -->\n\n{clean}\n"
        with translate_errors(folder):
            self._make_folders(folder)
            before(path)
            write_durably(path, content.encode("utf-8", "replace"))
            remove_drafts(folder)
            for old in sorted(folder.glob("*.md"))[:-KEPT_FILES]:
                old.unlink(missing_ok=True)
        return path

    def append_to_daily_log(self, root: Path, sections: Sequence[tuple[str, Sequence[str]]], now: float) -> Path | None:
        """Add to the daily log of a workspace (`daily_log`)."""
        return append_to_daily_log(self.places.state_dir, root, sections, now)

    def read(self, file: MemoryFile, max_bytes: int) -> str:
        """Return the beginning of a file; "" if it is missing or cannot be read."""
        try:
            with os.fdopen(os.open(file.path, os.O_RDONLY | _NO_LINK), "rb") as opened:
                return opened.read(max_bytes).decode("utf-8", "replace")
        except OSError:
            return ""

    def delete(self, path: Path, forget: Callable[[], tuple[Source, ...]] = tuple) -> bool:
        """Delete a memory file; return whether `restore` can undo it.

        `forget` drops and returns the sources of its text.

        The deleted content is kept only in the host's memory, until Neovim exits.

        Raises:
            StoreError: it is not a memory file, or does not exist.
            StoreUnavailable: it cannot be deleted.
        """
        places = self.places
        folders = (places.memory_dir, places.state_dir / PRIVATE_FOLDER, places.state_dir / DAILY_FOLDER)
        real = path.parent.resolve() / path.name
        if ".." in path.parts or not any(real.is_relative_to(folder.resolve()) for folder in folders):
            raise StoreError(f"{path} is not a memory file")
        if not path.is_file() or path.is_symlink():
            raise StoreError(f"{path} is gone")
        with self.changing(), translate_errors(path):
            status = path.stat()
            content = path.read_bytes() if status.st_size <= MAX_UNDO_BYTES else None
            path.unlink()
        sources = forget()
        if content is not None:
            self._deleted.append(DeletedFile(path, content, status.st_mtime, sources))
        return content is not None

    def restore(self, before: Callable[[DeletedFile], None] = _no_sources) -> DeletedFile:
        """Restore the file that was deleted last, and return it; `before` records the sources of its text.

        Raises:
            StoreError: no file was deleted, or another file has its name.
            StoreUnavailable: it cannot be written; the next call tries again.
        """
        if not self._deleted:
            raise StoreError("No deleted entry to restore")
        one = self._deleted[-1]
        with self.changing(), translate_errors(one.path):
            if os.path.lexists(one.path):
                raise StoreError(f"{one.path.name} exists again; rename it to restore the deleted one")
            self._make_folders(one.path.parent)
            before(one)
            write_durably(one.path, one.content)
            os.utime(one.path, (one.time, one.time))
        self._deleted.pop()
        return one

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock on the notes while a note is read and rewritten, because another Neovim may be changing it.

        Raises:
            StoreUnavailable: another process holds the lock for too long.
        """
        with translate_errors(self.places.memory_dir):
            make_private_folder(self.places.state_dir)
            turn = FileLock(self.places.state_dir / "memory.lock")
        try:
            yield
        finally:
            turn.release()

    def _make_folders(self, folder: Path) -> None:
        """Create a folder and its parents, accessible only to their owner."""
        places = (self.places.memory_dir, self.places.state_dir)
        above = [one for one in folder.parents if any(one == place or place in one.parents for place in places)]
        for one in (*reversed(above), folder):
            make_private_folder(one)
