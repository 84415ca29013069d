"""Checkpoints, snapshots and evidence of chats as files, so that they outlive the database (R-478).

    transcripts/checkpoints/<chat>.json         the newest checkpoint of any kind
    transcripts/checkpoints/<chat>/<name>.json  earlier ones; the name says time (ms), kind, messages, id
    transcripts/snapshots/<chat>.json           the newest snapshot (R-463: only that one is kept)
    transcripts/spans/<chat>.jsonl              the exact words of all evidence packets, each message once

They do not grow without bound. Of a chat the 10 newest checkpoints are kept, at most 32 MB of them, but always the
newest before a compaction; of its words the newest half once they are more than 4 MB. All chats together keep 512 MB:
the files of the chat written longest ago go first. Contents are the session's business; all methods block and may be
called from any thread, one at a time per chat. Errors come out as `StoreError`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import StoreCorrupt, StoreError
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model import checkpoint as payloads
from codecompanion.store.db import make_private_folder, told_as_ours
from codecompanion.store.durable_files import append_durably, remove_drafts, write_durably

FOLDER = "transcripts"
KEPT, KEPT_BYTES = 10, 32 * 1024 * 1024
SPANS_BYTES = 4 * 1024 * 1024
ALL_BYTES = 512 * 1024 * 1024
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,100}")
_NAME = re.compile(r"(\d+)-([a-z_]+)-(\d+)-([A-Za-z0-9_-]+)\.json")


class StoredCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint in the picker. `time` is ms since the epoch; `id` is `<chat>/<name>`, or `<chat>` for the newest."""

    id: str
    chat: str
    kind: str
    time: int
    messages: int
    title: str = ""


class StoredPayload(msgspec.Struct, frozen=True):
    """A file that a chat may be restored from: its JSON object, or why there is none."""

    kind: str
    where: str
    raw: dict[str, Any] | None = None
    problem: str = ""


class CheckpointFiles:
    """The folder `transcripts`; made with the first write."""

    def __init__(self, state_dir: Path) -> None:
        self.folder = state_dir / FOLDER
        self._checkpoints = self.folder / "checkpoints"
        self._snapshots = self.folder / "snapshots"
        self._spans = self.folder / "spans"
        self._known_spans: dict[str, set[str]] = {}
        self._swept = False

    # ---- writing

    def save_snapshot(self, chat_id: str, raw: Mapping[str, Any]) -> int:
        """Keep the newest snapshot of the chat; return its size in bytes.

        Raises:
            StoreUnavailable: it could not be written; the one before is still there.
        """
        content = payloads.encode(raw)
        with told_as_ours(self._snapshots):
            self._make_folders()
            write_durably(self._snapshots / f"{file_name(chat_id)}.json", content)
        return len(content)

    def save_checkpoint(self, chat_id: str, raw: Mapping[str, Any], *, keep: bool) -> None:
        """Make this the newest checkpoint of the chat; `keep`: also once there are newer ones.

        Raises:
            StoreUnavailable: it could not be written; the one before is still the newest.
        """
        name = file_name(chat_id)
        with told_as_ours(self._checkpoints):
            self._make_folders()
            earlier = self._checkpoints / name
            also = None
            if keep:
                make_private_folder(earlier)
                also = earlier / _checkpoint_name(raw)
            write_durably(self._checkpoints / f"{name}.json", payloads.encode(raw), also=also)
            if keep:
                _drop_old(earlier)

    def append_spans(self, chat_id: str, spans: Sequence[Mapping[str, Any]]) -> None:
        """Add the words of an evidence packet; what a message said is kept once.

        Raises:
            StoreUnavailable: they could not be written.
        """
        path = self._spans / f"{file_name(chat_id)}.jsonl"
        with told_as_ours(path):
            self._make_folders()
            known = self._known_spans.get(chat_id)
            if known is None:
                known = {str(span.get("objectId")) for span in self.load_spans(chat_id)}
            fresh = [span for span in spans if span.get("objectId") not in known]
            if fresh:
                append_durably(path, b"".join(payloads.encode(span) + b"\n" for span in fresh))
            self._known_spans[chat_id] = known | {str(span.get("objectId")) for span in fresh}
            if path.exists() and path.stat().st_size > SPANS_BYTES:
                _halve(path)

    def delete(self, chat_id: str) -> None:
        """Delete everything that is kept of the chat.

        Raises:
            StoreUnavailable: a file could not be deleted.
        """
        name = file_name(chat_id)
        self._known_spans.pop(chat_id, None)
        with told_as_ours(self.folder):
            for path in self._files(name):
                path.unlink(missing_ok=True)
            if (self._checkpoints / name).is_dir():
                shutil.rmtree(self._checkpoints / name)

    # ---- reading

    def list_checkpoints(self, chat_id: str = "") -> list[StoredCheckpoint]:
        """Return what can be restored (of one chat), newest first; what cannot be read is in it, too."""
        with told_as_ours(self._checkpoints):
            names = [file_name(chat_id)] if chat_id else sorted(self._names())
            found = [stored for name in names for stored in self._of_chat(name)]
        return sorted(found, key=lambda stored: stored.time, reverse=True)

    def payloads_of(self, chat_id: str, name: str = "") -> list[StoredPayload]:
        """Return the files of a chat in the order they are to be tried (R-473); `name` first when it is given."""
        chat = file_name(chat_id)
        with told_as_ours(self.folder):
            paths = [self._checkpoints / f"{chat}.json", *reversed(_kept(self._checkpoints / chat))]
            if name:
                wanted = self._checkpoints / chat / f"{Path(name).name}.json"
                paths = [wanted, *(path for path in paths if path != wanted)]
            found = [_load(path, "checkpoint") for path in paths if name or path.exists()]
            snapshot = self._snapshots / f"{chat}.json"
            if snapshot.exists():
                found.append(_load(snapshot, payloads.SNAPSHOT_EVENT))
        return found

    def newest(self, chat_id: str) -> dict[str, Any] | None:
        """Return the newest checkpoint as it is stored, None when there is none that can be read."""
        path = self._checkpoints / f"{file_name(chat_id)}.json"
        with told_as_ours(path):
            return _load(path, "checkpoint").raw if path.exists() else None

    def load_spans(self, chat_id: str) -> list[dict[str, Any]]:
        """Return the stored words of the chat, oldest first; a line that a kill has cut is left out."""
        path = self._spans / f"{file_name(chat_id)}.jsonl"
        with told_as_ours(path):
            lines = path.read_bytes().splitlines() if path.exists() else []
        return [span for line in lines if (span := _decode_line(line)) is not None]

    # ---- inside

    def _make_folders(self) -> None:
        for folder in (self.folder.parent, self.folder, self._checkpoints, self._snapshots, self._spans):
            make_private_folder(folder)
        if not self._swept:
            self._swept = True
            for folder in (self._checkpoints, self._snapshots, self._spans):
                remove_drafts(folder)
            self._drop_oldest_chats()

    def _names(self) -> set[str]:
        if not self._checkpoints.is_dir():
            return set()
        return {path.name.removesuffix(".json") for path in self._checkpoints.iterdir() if path.suffix != ".new"}

    def _of_chat(self, name: str) -> Iterator[StoredCheckpoint]:
        newest, is_kept = self._checkpoints / f"{name}.json", set[str]()
        title, chat = "", name
        if newest.exists():
            loaded = _load(newest, "checkpoint")
            raw = loaded.raw or {}
            title = _text(raw.get("title"))
            chat = given if file_name(given := _text(raw.get("chatId"))) == name else name
            stored = _newest_entry(chat, loaded, newest.stat().st_mtime)
            is_kept.add(f"-{stored.kind}-{stored.messages}-{_text(raw.get('id'))}")
            yield stored
        for path in _kept(self._checkpoints / name):
            match = _NAME.fullmatch(path.name)
            if match and path.stem[13:] not in is_kept:
                yield StoredCheckpoint(f"{chat}/{path.stem}", chat, match[2], int(match[1]), int(match[3]), title)

    def _drop_oldest_chats(self) -> None:
        """Keep all chats together below the limit."""
        sizes = {name: (_written_last(files), _size(files)) for name in self._names() if (files := self._files(name))}
        total = sum(size for _, size in sizes.values())
        for name, (_, size) in sorted(sizes.items(), key=lambda item: item[1][0]):
            if total <= ALL_BYTES:
                return
            for path in self._files(name):
                path.unlink(missing_ok=True)
            shutil.rmtree(self._checkpoints / name, ignore_errors=True)
            total -= size

    def _files(self, name: str) -> list[Path]:
        paths = [self._checkpoints / f"{name}.json", self._snapshots / f"{name}.json", self._spans / f"{name}.jsonl"]
        return [*(path for path in paths if path.exists()), *_kept(self._checkpoints / name)]


def file_name(chat_id: str) -> str:
    """Return the name of a chat's files: its id where that can be one, else the hash of it."""
    return chat_id if _SAFE.fullmatch(chat_id) else hashlib.sha256(chat_id.encode("utf-8", "replace")).hexdigest()


def _newest_entry(chat: str, loaded: StoredPayload, written_at: float) -> StoredCheckpoint:
    """Return how the newest checkpoint of a chat is listed, whatever is in its file."""
    raw = loaded.raw or {}
    messages, time = raw.get("conversationHistory"), raw.get("timestamp")
    return StoredCheckpoint(
        id=chat,
        chat=chat,
        kind=_text(raw.get("checkpointKind")) or ("damaged" if loaded.problem else "legacy"),
        time=time if isinstance(time, int) else round(written_at * 1000),
        messages=len(messages) if isinstance(messages, list) else 0,
        title=_text(raw.get("title")),
    )


def _checkpoint_name(raw: Mapping[str, Any]) -> str:
    count = len(raw["conversationHistory"])
    return f"{raw['timestamp']:013d}-{raw['checkpointKind']}-{count}-{raw['id']}.json"


def _kept(folder: Path) -> list[Path]:
    """Return the earlier checkpoints of a chat, oldest first."""
    return sorted(path for path in folder.glob("*.json") if _NAME.fullmatch(path.name)) if folder.is_dir() else []


def _drop_old(folder: Path) -> None:
    """Keep the newest of a chat, within number and size, and the newest one before a compaction."""
    room, number = KEPT_BYTES, 0
    found_before_compaction = False
    for path in reversed(_kept(folder)):
        is_precious = "-pre_compaction-" in path.name and not found_before_compaction
        found_before_compaction = found_before_compaction or is_precious
        size, number = path.stat().st_size, number + 1
        room -= size
        if number > 1 and not is_precious and (number > KEPT or room < 0):
            path.unlink(missing_ok=True)
    remove_drafts(folder)


def _halve(path: Path) -> None:
    """Keep the newest half of the lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    kept, size = len(lines), 0
    while kept and size + len(lines[kept - 1]) <= SPANS_BYTES // 2:
        kept -= 1
        size += len(lines[kept])
    write_durably(path, b"".join(lines[kept:]))


def _load(path: Path, kind: str) -> StoredPayload:
    try:
        with told_as_ours(path):
            return StoredPayload(kind, str(path), payloads.decode(path.read_bytes(), str(path)))
    except StoreError as error:
        return StoredPayload(kind, str(path), problem=str(error))


def _decode_line(line: bytes) -> dict[str, Any] | None:
    with contextlib.suppress(*NOT_READABLE, StoreCorrupt):
        span = json.loads(line)
        return span if isinstance(span, dict) else None
    return None


def _written_last(files: Sequence[Path]) -> float:
    return max(path.stat().st_mtime for path in files)


def _size(files: Sequence[Path]) -> int:
    # Two names of one content take the room of one.
    return sum({path.stat().st_ino: path.stat().st_size for path in files}.values())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
