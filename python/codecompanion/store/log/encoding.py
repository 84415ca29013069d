"""Encodes events and text as bytes, including values that SQLite and msgspec reject."""

from __future__ import annotations

import json

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.history import (
    EventPayload,
    decode_payload,
    encode_payload,
)


def storable(text: str) -> str:
    """Return the text with lone surrogates (bytes that were not UTF-8) replaced: SQLite columns must be UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def to_bytes(payload: EventPayload) -> bytes:
    """Return the payload as JSON; lone surrogates, which msgspec rejects, are kept losslessly as JSON escapes."""
    try:
        return encode_payload(payload)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(payload), separators=(",", ":")).encode("ascii")


def from_bytes(stored: bytes) -> EventPayload:
    """Return the payload written by `to_bytes`; raises `msgspec.MsgspecError` when it is damaged."""
    try:
        return decode_payload(stored)
    except (*NOT_READABLE, TypeError) as error:
        try:
            if b"\\ud" not in stored:
                raise error
            payload: EventPayload = typed.convert(json.loads(stored), EventPayload)
            return payload
        except (*NOT_READABLE, TypeError) as problem:
            raise msgspec.DecodeError(str(problem)) from problem
