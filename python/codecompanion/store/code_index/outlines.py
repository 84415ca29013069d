"""The signatures of a file in a few bytes: packed, then compressed; a third of what rows of text would take."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import msgspec

from codecompanion.formats import typed
from codecompanion.model.code import Definition


def pack_signatures(definitions: Sequence[Definition]) -> bytes:
    """Return the signatures, in the order of the definitions, as `outlines.signatures` holds them."""
    return zlib.compress(msgspec.msgpack.encode([one.signature for one in definitions]), 9)


def unpack_signatures(packed: bytes) -> list[str]:
    """Return the signatures of a file's definitions, by their ordinals.

    Raises:
        ValueError: that is no outline.
    """
    try:
        return typed.read_msgpack(zlib.decompress(packed), type=list[str])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"an outline is damaged: {error}") from error
