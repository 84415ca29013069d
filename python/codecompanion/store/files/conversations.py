"""Stores the conversations of checkpoints as append-only files; a checkpoint refers to a part of a file (R-478).

    transcripts/conversations/<chat>/<number>.jsonl    one line format: `model.conversation_lines`

A line is on disk before a checkpoint refers to it, so after a kill at any moment every checkpoint has its complete
conversation; lines that no checkpoint refers to are removed by the next append. A rewritten chat (resumed, compacted)
starts a new file; the old one is deleted with the last checkpoint that refers to it.
"""

from __future__ import annotations

import itertools
import json
import os
import zlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import StoreCorrupt
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex
from codecompanion.model import conversation_lines
from codecompanion.store.durable_files import flush_folder
from codecompanion.store.sqlite_connection import make_private_folder

KEY = "conversationFile"


_LAST = f',"{KEY}":'.encode()
_PLACE = regex(rb'\{"name":"[A-Za-z0-9_-]{1,100}","bytes":\d{1,15}(?:,"crc":(?:null|\d{1,15}))?\}\}')


class Place(msgspec.Struct, frozen=True):
    """The location of a checkpoint's conversation: the first `bytes` bytes of the file with this name."""

    name: str
    bytes: int
    crc: int | None = None
    """The CRC-32 of these bytes; None in checkpoints of older versions."""


class _Stored(msgspec.Struct, frozen=True):
    place: Place | None = msgspec.field(name=KEY, default=None)


def place_in(stored: bytes) -> Place | None:
    """Return the place of a checkpoint's conversation, or None if the checkpoint contains it itself or is unreadable.

    In our files the place is the last key, and nothing else is parsed, because a checkpoint may be megabytes in size.
    """
    if f'"{KEY}"'.encode() not in stored:
        return None
    last = stored[stored.rfind(_LAST) + len(_LAST) :] if _LAST in stored else b""
    try:
        if _PLACE.fullmatch(last):
            return typed.read_json(last[:-1], type=Place)
        # Not msgspec's own decoder, which rejects text cut inside a character.
        return typed.convert(json.loads(stored), _Stored).place
    except (*NOT_READABLE, msgspec.ValidationError):
        return None


class Conversations:
    """Reads and writes the files of all chats below one folder; chats are named by `checkpoints.file_name`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, chat: str) -> str:
        """Return the name of a new file, which the first append creates; older files are kept."""
        folder = self.folder / chat
        make_private_folder(self.folder)
        make_private_folder(folder)
        taken = {path.stem for path in folder.glob("*.jsonl")}
        return next(str(number) for number in itertools.count(1) if str(number) not in taken)

    def append(self, chat: str, place: Place, lines: Iterable[bytes]) -> Place:
        """Write the lines after the given place, and return the new place; the lines are on disk on return.

        Raises:
            OSError: the part up to `place` is unchanged; lines after it are overwritten by the next append.
        """
        path = self.path(chat, place.name)
        # An already named file must exist with its full length: a newly created one would have a hole.
        made = os.O_CREAT if not place.bytes else 0
        with os.fdopen(os.open(path, os.O_RDWR | made, 0o600), "r+b") as file:
            if os.fstat(file.fileno()).st_size < place.bytes:
                raise FileNotFoundError(f"{path} is shorter than it was")
            file.truncate(place.bytes)
            file.seek(place.bytes)
            crc = place.crc if place.bytes else 0
            for line in lines:
                file.write(line)
                crc = None if crc is None else zlib.crc32(line, crc)
            size = file.tell()
            file.flush()
            os.fsync(file.fileno())
        if not place.bytes:
            flush_folder(path.parent)
        return Place(place.name, size, crc)

    def resolve(self, chat: str, raw: dict[str, Any]) -> dict[str, Any]:
        """Return a checkpoint with its conversation and files included, in the format that earlier versions wrote.

        Raises:
            StoreCorrupt, OSError: they cannot be read.
        """
        rest = {key: value for key, value in raw.items() if key != KEY}
        try:
            place = typed.convert(raw.get(KEY), Place)
        except msgspec.ValidationError as error:
            raise StoreCorrupt(f"a checkpoint of {chat} is damaged: {error}") from error
        path = self.path(chat, Path(place.name).name)
        with path.open("rb") as file:
            stored = file.read(place.bytes)
        if len(stored) < place.bytes:
            raise StoreCorrupt(f"{path} is shorter than a checkpoint says")
        if place.crc is not None and zlib.crc32(stored) != place.crc:
            raise StoreCorrupt(f"{path} is damaged (its checksum does not match)")
        history, files = conversation_lines.read_lines(stored.splitlines(), str(path))
        group = rest.get("files")
        return {
            **rest,
            "conversationHistory": history,
            "files": {**(group if isinstance(group, dict) else {}), "read": files},
        }

    def remove_unused(self, chat: str, used: Collection[str]) -> None:
        """Delete the chat's files that are not in `used`."""
        for path in self.of_chat(chat):
            if path.stem not in used:
                path.unlink(missing_ok=True)

    def of_chat(self, chat: str) -> list[Path]:
        """Return the files of a chat."""
        return sorted((self.folder / chat).glob("*.jsonl"))

    def path(self, chat: str, name: str) -> Path:
        """Return the path of a file."""
        return self.folder / chat / f"{name}.jsonl"
