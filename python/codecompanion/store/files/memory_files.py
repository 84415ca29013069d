"""Summaries that outlive a chat: memory files and the daily log (R-446…R-449).

A memory is one Markdown file in `summaries` below the folder of the memory tool, so that later chats can read it; one
that looks sensitive goes into a folder of its own that no tool reads. The newest 200 of each are kept. The daily log is
`.cowork/memory/YYYY-MM-DD.md` in a workspace that has `.cowork`, else a file per project and day in our state folder.
What is written was sanitised (R-242): it is data to whoever reads it. All functions block; any thread may call them.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats.regex import regex
from codecompanion.store.durable_files import write_durably
from codecompanion.store.lease import FileLock
from codecompanion.store.sqlite_connection import make_private_folder, told_as_ours

MAX_CHARS, KEPT_FILES = 10_000, 200
FOLDER, PRIVATE_FOLDER, DAILY_FOLDER, KIT = "summaries", "private-memories", "daily", ".cowork"
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


class Memory(msgspec.Struct, frozen=True):
    """One stored summary in the picker. `time` is seconds since the epoch."""

    path: str
    title: str
    time: float
    private: bool = False


def compile_exclusions(patterns: Sequence[str], key: str) -> tuple[re.Pattern[str], ...]:
    """Return the user's exclusion patterns (regular expressions, case ignored).

    Raises:
        InputError: one is no regular expression; names the option and the pattern.
    """
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern, re.IGNORECASE | re.MULTILINE))
        except re.error as error:
            raise InputError(f"{key}: {pattern!r} is not a regular expression ({error})") from error
    return tuple(compiled)


def why_refused(texts: Sequence[str], exclusions: Sequence[re.Pattern[str]]) -> str:
    """Return why nothing of these texts may be remembered (R-449), "" when it may.

    `texts` are the summary and the user's own words after it: a summariser may have dropped the directive.
    """
    if any(_NO_MEMORY.search(text) for text in texts):
        return "the chat says not to remember it"
    matching = next((one.pattern for one in exclusions if any(one.search(text) for text in texts)), None)
    return f"it matches the exclusion {matching!r}" if matching is not None else ""


def looks_sensitive(text: str) -> bool:
    """Return whether the text should be out of reach of later chats (R-449)."""
    return bool(_SENSITIVE.search(text))


class MemoryFiles:
    """Where summaries are kept. `memory_dir` belongs to the memory tool, `state_dir` to us alone."""

    def __init__(self, memory_dir: Path, state_dir: Path) -> None:
        self._public, self._private = memory_dir / FOLDER, state_dir / PRIVATE_FOLDER
        self._state_dir = state_dir

    def save(self, kind: MemoryKind, title: str, text: str, chat_id: str, now: float) -> Memory:
        """Keep a summary; at most 10,000 characters of it.

        Raises:
            StoreUnavailable: it could not be written.
        """
        from codecompanion.formats.sanitise import sanitise_memory  # not part of the start

        clean, heading = sanitise_memory(text, MAX_CHARS), " ".join(sanitise_memory(title, 200).split()) or "(untitled)"
        private = looks_sensitive(clean)
        folder = self._private if private else self._public
        when = datetime.datetime.fromtimestamp(now).astimezone()
        tail = hashlib.sha256(f"{chat_id}:{kind}:{clean}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        path = folder / f"{when:%Y-%m-%d-%H%M%S}-{kind}-{tail}.md"
        content = f"# {heading}\n\n<!-- {kind} of chat {chat_id}, {when:%Y-%m-%d %H:%M} -->\n\n{clean}\n"
        with told_as_ours(folder):
            make_private_folder(folder)
            write_durably(path, content.encode("utf-8", "replace"))
            for old in sorted(folder.glob("*.md"))[:-KEPT_FILES]:
                old.unlink(missing_ok=True)
        return Memory(str(path), heading, now, private)

    def list_memories(self) -> list[Memory]:
        """Return what is kept, newest first."""
        found = []
        for folder, private in ((self._public, False), (self._private, True)):
            with told_as_ours(folder):
                for path in folder.glob("*.md") if folder.is_dir() else ():
                    first = path.read_text("utf-8", "replace").partition("\n")[0].lstrip("# ").strip()
                    found.append(Memory(str(path), first, path.stat().st_mtime, private))
        return sorted(found, key=lambda memory: (memory.time, memory.path), reverse=True)

    def append_to_daily_log(self, root: Path, sections: Sequence[tuple[str, Sequence[str]]], now: float) -> Path | None:
        """Add bullets below the headings of today's log; None when there is nothing to write (R-448).

        Raises:
            StoreUnavailable: it could not be written.
        """
        from codecompanion.formats.sanitise import sanitise_memory  # not part of the start

        bullets = [(heading, [sanitise_memory(item, 1000) for item in items]) for heading, items in sections]
        if not any(items for _, items in bullets):
            return None
        when = datetime.datetime.fromtimestamp(now).astimezone()
        folder = self._daily_folder(root)
        path = folder / f"{when:%Y-%m-%d}.md"
        with told_as_ours(path):
            make_private_folder(self._state_dir)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            turn = FileLock(self._state_dir / "daily.lock")  # another Neovim may be adding to the same day
            try:
                before = path.read_text("utf-8") if path.exists() else ""
                write_durably(path, add_bullets(before, bullets, f"{when:%H:%M}").encode("utf-8", "replace"))
            finally:
                turn.release()
        return path

    def _daily_folder(self, root: Path) -> Path:
        kit = root / KIT
        if kit.is_dir() and os.access(kit, os.W_OK | os.X_OK):
            return kit / "memory"
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", root.name) or "root"
        mark = hashlib.sha256(str(root).encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return self._state_dir / DAILY_FOLDER / f"{name}-{mark}"


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
