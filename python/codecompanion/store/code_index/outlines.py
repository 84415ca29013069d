"""Stores a file's signatures packed and compressed, which takes a third of the space of text rows."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import msgspec

from codecompanion.formats import typed
from codecompanion.model.code import Definition


def pack_signatures(definitions: Sequence[Definition]) -> bytes:
    """Return the signatures, in the order of the definitions, packed for `outlines.signatures`."""
    return zlib.compress(msgspec.msgpack.encode([one.signature for one in definitions]), 9)


def unpack_signatures(packed: bytes) -> list[str]:
    """Return the signatures of a file's definitions; an ordinal is an index into them.

    Raises:
        ValueError: the bytes are not an outline.
    """
    try:
        return typed.read_msgpack(zlib.decompress(packed), type=list[str])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"an outline is damaged: {error}") from error
