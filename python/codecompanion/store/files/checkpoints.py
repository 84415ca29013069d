"""Stores checkpoints, snapshots and evidence of chats as files that survive the loss of the database (R-478).

    transcripts/checkpoints/<chat>.json         the newest checkpoint of any kind
    transcripts/checkpoints/<chat>/<name>.json  earlier ones; the name has the time (ms), kind, messages, id
    transcripts/snapshots/<chat>.json           the newest snapshot (R-463: only that one is kept)
    transcripts/spans/<chat>.jsonl              the exact words of all evidence packets, each message once
    transcripts/conversations/<chat>/           the conversations of these checkpoints (`store.files.conversations`)

Their size is bounded. For each chat, the 10 newest checkpoints are kept with their conversations, up to 32 MB, but the
newest one before a compaction is always kept; of the evidence, the newest part is kept (`store.files.spans`). All chats
together keep 512 MB: the files of the chat written longest ago are removed first. The session decides the contents; all
methods block and may be called from any thread, one at a time per chat. Errors are raised as `StoreError`. This module
is longer than 300 lines, because writing, naming and removing the files are best read together.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import StoreCorrupt, StoreError
from codecompanion.formats.regex import regex
from codecompanion.model import checkpoint as payloads
from codecompanion.store.durable_files import remove_drafts, write_durably
from codecompanion.store.files.conversations import KEY, Conversations, Place, place_in
from codecompanion.store.files.spans import Spans
from codecompanion.store.sqlite_connection import make_private_folder, translate_errors

FOLDER = "transcripts"
KEPT, KEPT_BYTES = 10, 32 * 1024 * 1024
ALL_BYTES = 512 * 1024 * 1024
REACHED = "logSeq"
"""The key for the sequence number of the newest log event at a checkpoint; the first key after the checksum."""
_HEAD_BYTES = 64
_NEWEST_SEQ = regex(rb'\{(?:"crc":"[0-9a-f]{8}",)?"logSeq":(\d{1,15})\b')
_CHECKSUM = regex(rb'\{"crc":"([0-9a-f]{8})",')
_SAFE = regex(r"[A-Za-z0-9_-]{1,100}")
_NAME = regex(r"(\d+)-([a-z_]+)-(\d+)-([A-Za-z0-9_-]+)\.json")


class StoredCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint in the picker. `time`: ms since the epoch; `id`: `<chat>/<name>`, or `<chat>` for the newest."""

    id: str
    chat: str
    kind: str
    time: int
    messages: int
    title: str = ""


class StoredPayload(msgspec.Struct, frozen=True):
    """A file from which a chat may be restored: its JSON object, or why it is unreadable."""

    kind: str
    where: str
    raw: dict[str, Any] | None = None
    problem: str = ""


class CheckpointFiles:
    """Reads and writes the `transcripts` folder, which the first write creates."""

    def __init__(self, state_dir: Path) -> None:
        self.folder = state_dir / FOLDER
        self._checkpoints = self.folder / "checkpoints"
        self._snapshots = self.folder / "snapshots"
        self._conversations = Conversations(self.folder / "conversations")
        self._spans = Spans(self.folder / "spans")
        self._swept = False

    # ---- writing

    def begin_conversation(self, chat_id: str) -> Place:
        """Start an empty conversation and return its place; checkpoints may refer to it after the first append.

        Raises:
            StoreUnavailable: the conversation cannot be written.
        """
        with translate_errors(self._conversations.folder):
            self._make_folders()
            return Place(self._conversations.begin(file_name(chat_id)), 0)

    def append_conversation(self, chat_id: str, place: Place, lines: Iterable[bytes]) -> Place:
        """Append lines of `model.conversation_lines` to the conversation at `place`, and return the new place.

        Raises:
            StoreUnavailable: the lines could not be written; the earlier lines are unchanged.
        """
        with translate_errors(self._conversations.folder):
            return self._conversations.append(file_name(chat_id), place, lines)

    def save_snapshot(self, chat_id: str, raw: Mapping[str, Any]) -> int:
        """Save the newest snapshot of the chat; return its size in bytes.

        Raises:
            StoreUnavailable: it could not be written; the previous one still exists.
        """
        content = with_checksum(payloads.encode_in_slices(raw))
        with translate_errors(self._snapshots):
            self._make_folders()
            write_durably(self._snapshots / f"{file_name(chat_id)}.json", content)
        return len(content)

    def save_checkpoint(self, chat_id: str, raw: Mapping[str, Any], *, keep: bool) -> None:
        """Save this as the newest checkpoint of the chat; `keep`: keep it even after newer ones are saved.

        Raises:
            StoreUnavailable: it could not be written; the previous one is still the newest.
        """
        name = file_name(chat_id)
        with translate_errors(self._checkpoints):
            self._make_folders()
            earlier = self._checkpoints / name
            also = None
            if keep:
                make_private_folder(earlier)
                also = earlier / _checkpoint_name(raw)
            content = with_checksum(payloads.encode_in_slices(raw))
            write_durably(self._checkpoints / f"{name}.json", content, also=also)
            if keep:
                self._drop_old(name)
            self._drop_conversations(name)

    def append_spans(self, chat_id: str, spans: Sequence[Mapping[str, Any]]) -> None:
        """Add the quoted words of an evidence packet; each message is stored once.

        Raises:
            StoreUnavailable: they could not be written.
        """
        with translate_errors(self._spans.folder):
            self._make_folders()
            self._spans.append(file_name(chat_id), spans)

    def delete(self, chat_id: str) -> None:
        """Delete all files of the chat.

        Raises:
            StoreUnavailable: a file could not be deleted.
        """
        import shutil  # slow to import

        name = file_name(chat_id)
        self._spans.forget(name)
        with translate_errors(self.folder):
            for path in self._files(name):
                path.unlink(missing_ok=True)
            for folder in (self._checkpoints / name, self._conversations.folder / name):
                if folder.is_dir():
                    shutil.rmtree(folder)

    # ---- reading

    def list_checkpoints(self, chat_id: str = "") -> list[StoredCheckpoint]:
        """Return the checkpoints (of one chat, or of all) for the picker, newest first, including unreadable ones."""
        with translate_errors(self._checkpoints):
            names = [file_name(chat_id)] if chat_id else sorted(self._names())
            found = [stored for name in names for stored in self._of_chat(name)]
        return sorted(found, key=lambda stored: stored.time, reverse=True)

    def payloads_of(self, chat_id: str, name: str = "") -> list[StoredPayload]:
        """Return the files of a chat in the order in which to try them (R-473), starting with `name` if given."""
        chat = file_name(chat_id)
        with translate_errors(self.folder):
            paths = [self._checkpoints / f"{chat}.json", *reversed(_kept(self._checkpoints / chat))]
            if name:
                wanted = self._checkpoints / chat / f"{Path(name).name}.json"
                paths = [wanted, *(path for path in paths if path != wanted)]
            found = [self._whole(chat, _load(path, "checkpoint")) for path in paths if name or path.exists()]
            snapshot = self._snapshots / f"{chat}.json"
            if snapshot.exists():
                found.append(self._whole(chat, _load(snapshot, payloads.SNAPSHOT_EVENT)))
        return found

    def newest(self, chat_id: str) -> dict[str, Any] | None:
        """Return the newest checkpoint without its conversation, or None if there is none or it is unreadable."""
        path = self._checkpoints / f"{file_name(chat_id)}.json"
        with translate_errors(path):
            return _load(path, "checkpoint").raw if path.exists() else None

    def newest_seqs(self) -> dict[str, int]:
        """Return the last log event covered by each chat's newest checkpoint, by `file_name`; 0 = unknown.

        Reads the first bytes of each file: 0.1 ms per chat, measured on a busy machine.
        """
        with translate_errors(self._checkpoints):
            return {name: self.newest_seq_of(name) for name in self._names()}

    def newest_seq_of(self, name: str) -> int:
        """Return the last log event covered by the newest checkpoint of the chat with this `file_name`; 0 = unknown."""
        head, path = b"", self._checkpoints / f"{name}.json"
        with translate_errors(path), contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        match = _NEWEST_SEQ.match(head)
        return int(match[1]) if match else 0

    def keep_newest(self, chat_id: str) -> None:
        """Keep the newest checkpoint of the chat even after newer ones are saved.

        Raises: StoreUnavailable: it could not be kept.
        """
        name = file_name(chat_id)
        newest = self._checkpoints / f"{name}.json"
        with translate_errors(newest):
            loaded = _load(newest, "checkpoint")
            if loaded.raw is not None and _NAME.fullmatch(kept := _checkpoint_name(loaded.raw)):
                make_private_folder(self._checkpoints / name)
                write_durably(self._checkpoints / name / kept, newest.read_bytes())

    def load_spans(self, chat_id: str) -> list[dict[str, Any]]:
        """Return the chat's stored words, oldest first, without lines truncated when a host was killed."""
        with translate_errors(self._spans.folder):
            return self._spans.load(file_name(chat_id))

    # ---- internals

    def _make_folders(self) -> None:
        for folder in (self.folder.parent, self.folder, self._checkpoints, self._snapshots, self._spans.folder):
            make_private_folder(folder)
        if not self._swept:
            self._swept = True
            for folder in (self._checkpoints, self._snapshots, self._spans.folder):
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
        """Keep the total size of all chats below the limit."""
        sizes = {name: (_written_last(files), _size(files)) for name in self._names() if (files := self._files(name))}
        total = sum(size for _, size in sizes.values())
        for name, (_, size) in sorted(sizes.items(), key=lambda item: item[1][0]):
            if total <= ALL_BYTES:
                return
            for path in self._files(name):
                path.unlink(missing_ok=True)
            import shutil

            for folder in (self._checkpoints / name, self._conversations.folder / name):
                shutil.rmtree(folder, ignore_errors=True)
            total -= size

    def _files(self, name: str) -> list[Path]:
        paths = [*self._states(name), self._spans.path(name), *self._conversations.of_chat(name)]
        return [path for path in paths if path.exists()]

    def _states(self, name: str) -> list[Path]:
        """Return the files that may refer to a conversation, with the newest checkpoint first."""
        newest = [self._checkpoints / f"{name}.json", self._snapshots / f"{name}.json"]
        return [*(path for path in newest if path.exists()), *reversed(_kept(self._checkpoints / name))]

    def _whole(self, name: str, stored: StoredPayload) -> StoredPayload:
        """Return the payload with its conversation, which may be in a separate file."""
        if stored.raw is None or KEY not in stored.raw:
            return stored
        try:
            with translate_errors(self._conversations.folder):
                return msgspec.structs.replace(stored, raw=self._conversations.resolve(name, stored.raw))
        except StoreError as error:
            return StoredPayload(stored.kind, stored.where, problem=str(error))

    def _drop_old(self, name: str) -> None:
        """Delete a chat's checkpoints beyond the number and size limits, except the newest before a compaction."""
        room, number, counted = KEPT_BYTES, 0, set[str]()
        found_before_compaction = False
        for path in reversed(_kept(self._checkpoints / name)):
            is_precious = "-pre_compaction-" in path.name and not found_before_compaction
            found_before_compaction = found_before_compaction or is_precious
            place, number = place_in(path.read_bytes()), number + 1
            room -= path.stat().st_size
            if place is not None and place.name not in counted:
                counted.add(place.name)
                room -= place.bytes
            if number > 1 and not is_precious and (number > KEPT or room < 0):
                path.unlink(missing_ok=True)
        remove_drafts(self._checkpoints / name)

    def _drop_conversations(self, name: str) -> None:
        """Delete the conversations that no checkpoint refers to."""
        if len(self._conversations.of_chat(name)) > 1:
            places = [place_in(path.read_bytes()) for path in self._states(name)]
            self._conversations.remove_unused(name, {place.name for place in places if place is not None})


def file_name(chat_id: str) -> str:
    """Return the name of a chat's files: its id if that is a safe file name, else its hash."""
    return chat_id if _SAFE.fullmatch(chat_id) else hashlib.sha256(chat_id.encode("utf-8", "replace")).hexdigest()


def _newest_entry(chat: str, loaded: StoredPayload, written_at: float) -> StoredCheckpoint:
    """Return the list entry of a chat's newest checkpoint, whatever its file contains."""
    raw = loaded.raw or {}
    messages, count, time = raw.get("conversationHistory"), raw.get("messageCount"), raw.get("timestamp")
    return StoredCheckpoint(
        id=chat,
        chat=chat,
        kind=_text(raw.get("checkpointKind")) or ("damaged" if loaded.problem else "legacy"),
        time=time if isinstance(time, int) else round(written_at * 1000),
        messages=len(messages) if isinstance(messages, list) else count if isinstance(count, int) else 0,
        title=_text(raw.get("title")),
    )


def _checkpoint_name(raw: Mapping[str, Any]) -> str:
    count = len(raw["conversationHistory"]) if "conversationHistory" in raw else raw["messageCount"]
    return f"{raw['timestamp']:013d}-{raw['checkpointKind']}-{count}-{raw['id']}.json"


def _kept(folder: Path) -> list[Path]:
    """Return the earlier checkpoints of a chat, oldest first."""
    return sorted(path for path in folder.glob("*.json") if _NAME.fullmatch(path.name)) if folder.is_dir() else []


def _load(path: Path, kind: str) -> StoredPayload:
    try:
        with translate_errors(path):
            raw = payloads.decode(_without_checksum(path.read_bytes(), path), str(path))
            return StoredPayload(kind, str(path), raw)
    except StoreError as error:
        return StoredPayload(kind, str(path), problem=str(error))


def with_checksum(content: bytes) -> bytes:
    """Return the JSON object with its checksum as the first key: the CRC-32 of the object without the key."""
    if content == b"{}":
        return content
    return b'{"crc":"%08x",' % zlib.crc32(content) + content[1:]


def _without_checksum(stored: bytes, path: Path) -> bytes:
    """Return the object without its checksum; a file that was edited, or written by an older version, has none.

    Raises: StoreCorrupt: the checksum does not match.
    """
    found = _CHECKSUM.match(stored)
    if found is None:
        return stored
    content = b"{" + stored[found.end() :]
    if zlib.crc32(content) != int(found[1], 16):
        raise StoreCorrupt(f"{path} is damaged (its checksum does not match)")
    return content


def _written_last(files: Sequence[Path]) -> float:
    return max(path.stat().st_mtime for path in files)


def _size(files: Sequence[Path]) -> int:
    # Two hard links to the same file take up its size only once.
    return sum({path.stat().st_ino: path.stat().st_size for path in files}.values())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
