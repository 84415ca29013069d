"""The audit log: the commands run for a chat, their folder and grant, and hashes of changed files.

Records are JSON Lines in `audit.jsonl` of the data folder. At `MAX_BYTES` the file becomes `audit.1.jsonl`, replacing
the previous one. Each line contains the hash of the line before it, which reveals changed, deleted or inserted lines.
`audit.head` contains the newest hash and the hashes that precede the two files, which reveals a missing beginning or
end, or an older file put in its place. Anyone who may write the files can still rewrite all of them. A separate thread
writes the log without blocking callers; several hosts take turns with a file lock.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.store.durable_files import write_whole
from codecompanion.store.lease import FileLock

FILE, OLDER, HEAD, LOCK = "audit.jsonl", "audit.1.jsonl", "audit.head", "audit.lock"
MAX_BYTES = 5_000_000
MAX_LINE_BYTES = 64_000
"""Maximum line length: string values in longer lines are truncated, but the hash of the executed text is kept."""
BATCH_S = 0.25
"""Number of seconds for which non-urgent records are batched; if the host is killed, they are lost."""
_USUAL_TAIL = 8_192
_CUT = 2_000
_MAX_DEPTH, _MAX_ITEMS, _MAX_KEY = 20, 100, 200
_STOP = object()
Record = Mapping[str, Any]


class Audit(msgspec.Struct, frozen=True):
    """The content of the log: its records, oldest first, and a description of a broken hash chain ("" = intact)."""

    records: tuple[dict[str, Any], ...]
    broken: str = ""


class AuditLog:
    """Writes the log of one data folder; with `folder` None it stores nothing. `hide` masks keys."""

    def __init__(self, folder: Path | None, hide: Callable[[str], str], report: Callable[[str], None]) -> None:
        """Create the writer; its thread calls `report` once with a message if records cannot be written."""
        self.folder, self._hide, self._report = folder, hide, report
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._told = False

    def add(self, record: Record, *, urgent: bool = True) -> None:
        """Queue a record. Urgent records are flushed soon, others within `BATCH_S`.

        Must always be called from the same thread.
        """
        if self.folder is None:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, name="audit", daemon=True)
            self._thread.start()
        self._waiting.put((record, urgent))

    def close(self, limit_s: float = 5.0) -> None:
        """Write the queued records."""
        if self._thread is not None:
            self._waiting.put(_STOP)
            self._thread.join(limit_s)
            self._thread = None

    def _write_all(self) -> None:
        while True:
            taken = self._take()
            wanted = [entry[0] for entry in taken if entry is not _STOP]
            try:
                if wanted and self.folder is not None:
                    urgent = any(entry is _STOP or entry[1] for entry in taken)
                    self._append(self.folder, wanted, flush=urgent)
            except (OSError, sqlite3.Error, ValueError, RecursionError) as error:
                if not self._told:
                    self._told = True
                    why = getattr(error, "strerror", None) or str(error)
                    self._report(f"Audit log not written: {self.folder} ({why}). Nothing is recorded.")
            if len(wanted) < len(taken):
                return

    def _take(self) -> list[Any]:
        """Wait for a record and, unless it is urgent, up to `BATCH_S` for more, because each flush delays the store."""
        taken, until = [self._waiting.get()], time.monotonic() + BATCH_S
        while not any(entry is _STOP or entry[1] for entry in taken):
            try:
                taken.append(self._waiting.get(timeout=max(0.0, until - time.monotonic())))
            except queue.Empty:
                return taken
        while not self._waiting.empty():
            taken.append(self._waiting.get())
        return taken

    def _append(self, folder: Path, records: list[Record], *, flush: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        try:
            path = folder / FILE
            before, head = _newest(folder), _head(folder)
            older, begins = head.get("older_begins"), head.get("begins", "")
            if path.exists() and path.stat().st_size > MAX_BYTES:
                path.replace(folder / OLDER)
                older, begins = begins, before
            lines = []
            for record in records:
                line, before = _line(record, before, self._hide)
                lines.append(line)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                file.write((b"" if _ends_whole(path) else b"\n") + b"".join(lines))
                file.flush()
                if flush:
                    os.fsync(file.fileno())
            head = {"hash": before, "begins": begins, "older_begins": older}
            write_whole(folder / HEAD, json.dumps(head).encode(), flush=False)
        finally:
            lock.release()


def read_audit(folder: Path, chat: str = "") -> Audit:
    """Return the audit log of a data folder, for one chat or for all ("" = all). Blocks."""
    found: list[dict[str, Any]] = []
    before, broken, first, seen = "", "", None, set[str]()
    for place, line in _lines(folder):
        try:
            record = json.loads(line)
            told = record["hash"]
            is_whole = told == _hash(record) and (not before or record["before"] == before)
        except (KeyError, TypeError, *NOT_READABLE):
            broken = broken or f"{place} is not a record"
            continue
        if not is_whole and not broken:
            broken = f"{place} does not follow the record before it, or was changed"
        before = told
        seen.add(told)
        first = record["before"] if first is None else first
        if not chat or record.get("chat") == chat:
            found.append(record)
    return Audit(tuple(found), broken or _lost(folder, first, seen))


def _lost(folder: Path, first: str | None, seen: set[str]) -> str:
    """Return which part of the log is missing according to the head file, or "".

    `first` is the hash before the oldest record.
    """
    head = _head(folder)
    if not head:
        return "" if first is None else f"{HEAD} is missing"
    if head.get("hash") not in seen:
        return f"the newest records of {FILE} are missing"
    older = head.get("older_begins")
    if older is not None and not (folder / OLDER).exists():
        return f"{OLDER} is missing"
    return "" if first == (head.get("begins", "") if older is None else older) else "the oldest records are missing"


def _newest(folder: Path) -> str:
    """Return the hash to store in the next record; the head file has it even if the newest record was lost."""
    found, told = _last_hash(folder / FILE) or _last_hash(folder / OLDER), str(_head(folder).get("hash", ""))
    if not told or told == found:
        return found
    files = [path for path in (folder / FILE, folder / OLDER) if path.exists()]
    is_behind = any(
        told.encode() in path.read_bytes() for path in files
    )  # its host was killed before it wrote the head
    return found if is_behind else told


def _head(folder: Path) -> dict[str, Any]:
    """Return the content of the head file, or {} for a new log."""
    try:
        head = json.loads((folder / HEAD).read_bytes())
    except FileNotFoundError:
        return {}
    except NOT_READABLE:
        return {"hash": ""}
    return head if isinstance(head, dict) else {"hash": ""}


def size_of(folder: Path) -> int:
    """Return the size of the log on disk in bytes."""
    return sum(path.stat().st_size for path in (folder / OLDER, folder / FILE) if path.exists())


def _lines(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name in (OLDER, FILE):
        path = folder / name
        if path.exists():
            for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
                if line.strip():
                    yield f"{name}:{number}", line


def _line(record: Record, before: str, hide: Callable[[str], str]) -> tuple[bytes, str]:
    known = _hidden(record, hide)
    if len(json.dumps(known, ensure_ascii=False)) > MAX_LINE_BYTES // 4:
        known = _cut(known)
        if len(json.dumps(known, ensure_ascii=False)) > MAX_LINE_BYTES // 4:
            known = {key: inner if _is_short(inner) else _digest(inner) for key, inner in known.items()}
    whole = {**known, "before": before}
    whole["hash"] = _hash(whole)
    return json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace") + b"\n", whole["hash"]


def _hidden(value: Any, hide: Callable[[str], str], depth: int = 0) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping | list | tuple) and depth == _MAX_DEPTH:
        return f"[… deeper than {_MAX_DEPTH} levels]"
    if isinstance(value, Mapping):
        return {hide(str(key)): _hidden(inner, hide, depth + 1) for key, inner in value.items()}
    return [_hidden(inner, hide, depth + 1) for inner in value] if isinstance(value, list | tuple) else value


def _is_short(value: Any) -> bool:
    return len(json.dumps(value, ensure_ascii=False)) <= _CUT


def _digest(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return f"[… {len(text):,} characters, sha256 {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}]"


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        if len(value) <= _CUT:
            return value
        digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
        return f"{value[:_CUT]} [… {len(value):,} characters, sha256 {digest}]"
    if isinstance(value, dict):
        kept = {_cut_key(key): _cut(value[key]) for key in list(value)[:_MAX_ITEMS]}
        return kept if len(value) <= _MAX_ITEMS else {**kept, "…": _digest(value)}
    if isinstance(value, list) and len(value) > _MAX_ITEMS:
        return [*map(_cut, value[:_MAX_ITEMS]), _digest(value)]
    return [_cut(inner) for inner in value] if isinstance(value, list) else value


def _cut_key(key: str) -> str:
    return key if len(key) <= _MAX_KEY else f"{key[:_MAX_KEY]} {_digest(key)}"


def _hash(record: Mapping[str, Any]) -> str:
    said = {key: value for key, value in record.items() if key != "hash"}
    return hashlib.sha256(json.dumps(said, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")).hexdigest()


def _last_hash(path: Path) -> str:
    """Return the hash of the newest complete line, or "" if there is none."""
    for size in (_USUAL_TAIL, 4 * MAX_LINE_BYTES):
        for line in reversed(_tail(path, size).split(b"\n")):
            try:
                return str(json.loads(line)["hash"])
            except (KeyError, TypeError, *NOT_READABLE):
                continue
    return ""


def _ends_whole(path: Path) -> bool:
    return _tail(path, 1) in (b"", b"\n")


def _tail(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read()
    except FileNotFoundError:
        return b""
