"""Assembles `reasoning_details` from a stream: reasoning that an endpoint requires back unchanged.

OpenRouter sends it beside the readable `reasoning` (https://openrouter.ai/docs, preserving reasoning blocks): an array
of `reasoning.text` (with a signature at its end), `reasoning.summary` and `reasoning.encrypted`. Pieces of one entry
share type and index. In recorded streams, a summary and its encrypted reasoning have the same index.

Copilot sends `reasoning_text` and `reasoning_opaque` instead, and requires both back with the calls that followed them.
They are stored as an entry of the plugin's own type.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from io import StringIO
from typing import Any

import msgspec

from codecompanion.adapters.reply_events import ReplyEvents
from codecompanion.formats import typed

_GROWING = ("text", "summary")
_LOOKED_AT = 8
"""Number of most recent entries with the same type and index that a piece may continue."""
_COPILOT = "copilot"


def copilot_entry(text: object, encrypted: object) -> dict[str, Any]:
    """Return Copilot's two reasoning fields as a piece of an entry."""
    kept = {"text": text, "encrypted": encrypted}
    return {"type": _COPILOT, "index": 0} | {name: value for name, value in kept.items() if isinstance(value, str)}


def wire_fields(entries: list[msgspec.Raw]) -> dict[str, Any]:
    """Return the message fields that send the entries back, or {} for a Copilot entry without its encrypted part."""
    if not entries or b'"copilot"' not in bytes(entries[0]):
        return {"reasoning_details": entries}
    entry = typed.read_json(entries[0], type=dict[str, Any])
    if entry.get("type") != _COPILOT:
        return {"reasoning_details": entries}
    if not entry.get("encrypted"):
        return {}
    return {"reasoning_text": entry.get("text") or "", "reasoning_opaque": entry["encrypted"]}


class ReasoningDetails:
    """Collects entries in order of arrival. Stored text counts toward the limit in `out`, which raises `LimitHit`."""

    def __init__(self, out: ReplyEvents) -> None:
        self._out = out
        self._entries: list[_Entry] = []
        self._alike: dict[tuple[object, object], deque[_Entry]] = {}

    def add(self, pieces: object) -> str:
        """Add the array in one chunk or in a whole reply; return its readable text."""
        text: list[str] = []
        for piece in pieces if isinstance(pieces, list) else []:
            if isinstance(piece, Mapping):
                text.extend(str(piece[name]) for name in _GROWING if piece.get(name))
                self._add(piece)
        return "".join(text)

    def as_json(self) -> str:
        """Return the entries as a JSON array, or "" if nothing arrived."""
        return msgspec.json.encode([entry.whole() for entry in self._entries]).decode() if self._entries else ""

    def _add(self, piece: Mapping[str, Any]) -> None:
        key = _plain(piece.get("type")), _plain(piece.get("index"))
        alike = self._alike.setdefault(key, deque(maxlen=_LOOKED_AT))
        entry = next((entry for entry in reversed(alike) if _continues(entry.fields, piece)), None)
        if entry is None:
            self._out.charge_item()
            entry = _Entry(self._out)
            self._entries.append(entry)
            alike.append(entry)
        entry.take(piece)


class _Entry:
    """An entry: its fixed fields, and the fields that arrive in pieces."""

    __slots__ = ("_growing", "_out", "fields")

    def __init__(self, out: ReplyEvents) -> None:
        self._out = out
        self.fields: dict[str, Any] = {}
        self._growing: dict[str, StringIO] = {}

    def take(self, piece: Mapping[str, Any]) -> None:
        for name, value in piece.items():
            if name in _GROWING and isinstance(value, str):
                self._out.charge(len(value))
                self._growing.setdefault(name, StringIO()).write(value)
                self.fields.setdefault(name, "")
            elif name not in self.fields or (value is not None and value != self.fields[name]):
                self._out.charge_value({name: value})
                self.fields[name] = value

    def whole(self) -> dict[str, Any]:
        return self.fields | {name: text.getvalue() for name, text in self._growing.items()}


def _plain(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""


def _continues(entry: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    """Return whether the piece belongs to the entry. Encrypted data arrives whole: a second piece is another entry."""
    one, other = entry.get("id"), piece.get("id")
    return (one is None or other is None or one == other) and entry.get("data") == piece.get("data")
