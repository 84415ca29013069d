"""`reasoning_details`: reasoning that an endpoint wants back as it was, put together from the pieces of a stream.

OpenRouter sends it beside the readable `reasoning` (https://openrouter.ai/docs, preserving reasoning blocks): an array
of `reasoning.text` (with a signature at its end), `reasoning.summary` and `reasoning.encrypted`. Pieces of one entry
share type and index. Recorded streams number a summary and the encrypted form of the same reasoning alike.

Copilot sends `reasoning_text` and `reasoning_opaque` instead, and wants both back beside the calls they led to. They
are kept as an entry of a type of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_GROWING = ("text", "summary")
_COPILOT = "copilot"


def copilot_entry(text: object, encrypted: object) -> dict[str, Any]:
    """Return Copilot's two fields as a piece of an entry."""
    kept = {"text": text, "encrypted": encrypted}
    return {"type": _COPILOT, "index": 0} | {name: value for name, value in kept.items() if isinstance(value, str)}


def wire_fields(entries: list[msgspec.Raw]) -> dict[str, Any]:
    """Return the fields of a message that give the entries back; none for Copilot's without the part it signed."""
    if not entries or b'"copilot"' not in bytes(entries[0]):
        return {"reasoning_details": entries}
    entry = msgspec.json.decode(entries[0], type=dict[str, Any])
    if entry.get("type") != _COPILOT:
        return {"reasoning_details": entries}
    if not entry.get("encrypted"):
        return {}
    return {"reasoning_text": entry.get("text") or "", "reasoning_opaque": entry["encrypted"]}


class ReasoningDetails:
    """Collects entries in the order in which they began."""

    def __init__(self) -> None:
        self._entries: list[dict[str, Any]] = []

    def add(self, pieces: object) -> str:
        """Take in the array of one chunk or of a whole reply; return its readable text."""
        text: list[str] = []
        for piece in pieces if isinstance(pieces, list) else []:
            if isinstance(piece, Mapping):
                text.extend(str(piece[name]) for name in _GROWING if piece.get(name))
                self._add(piece)
        return "".join(text)

    def as_json(self) -> str:
        """Return the array, "" when nothing came."""
        return msgspec.json.encode(self._entries).decode() if self._entries else ""

    def _add(self, piece: Mapping[str, Any]) -> None:
        last = next((entry for entry in reversed(self._entries) if _continues(entry, piece)), None)
        if last is None:
            self._entries.append(dict(piece))
            return
        for name, value in piece.items():
            if name in _GROWING and isinstance(value, str):
                last[name] = (last.get(name) or "") + value
            elif value is not None:
                last[name] = value


def _continues(entry: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    """Return whether the piece belongs to the entry. What is encrypted comes whole: a second one is another."""
    same = all(entry.get(name) == piece.get(name) for name in ("type", "index"))
    ids = {entry.get("id"), piece.get("id")} - {None}
    return same and len(ids) < 2 and entry.get("data") == piece.get("data")
