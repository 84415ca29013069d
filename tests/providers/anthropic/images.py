"""Properties of an image that the provider determines before a model sees it: format, size in pixels, cost in tokens.

Cost: one token per patch of 28 x 28 pixels after fitting into 1568 px and 1568 tokens (the standard tier of the
vision page; the high-resolution tier of newer models is not simulated).
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping
from typing import Any

MAX_TOKENS = 1568
PATCH_PX = 28


def image_tokens(source: Mapping[str, Any]) -> int:
    """Return the token cost of an image, or the maximum for a URL or file id, whose size is unknown."""
    size = image_size(source) if source["type"] == "base64" else None
    if size is None:
        return MAX_TOKENS
    return min(MAX_TOKENS, math.ceil(size[0] / PATCH_PX) * math.ceil(size[1] / PATCH_PX))


def image_size(source: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return (width, height) in pixels of a base64 image, or None if the data is not an image of its media type."""
    try:
        content = base64.b64decode(source["data"], validate=True)
    except (binascii.Error, ValueError):
        return None
    readers = {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg, "image/webp": _webp}
    try:
        return readers[source["media_type"]](content)
    except (KeyError, IndexError, struct.error):
        return None


def _png(content: bytes) -> tuple[int, int] | None:
    if not content.startswith(b"\x89PNG\r\n\x1a\n"):
        return None
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def _gif(content: bytes) -> tuple[int, int] | None:
    if content[:6] not in (b"GIF87a", b"GIF89a"):
        return None
    width, height = struct.unpack("<HH", content[6:10])
    return width, height


def _jpeg(content: bytes) -> tuple[int, int] | None:
    if not content.startswith(b"\xff\xd8"):
        return None
    at = 2
    while True:
        marker, length = content[at + 1], struct.unpack(">H", content[at + 2 : at + 4])[0]
        # A frame header is any SOF marker; C4, C8 and CC in that range are tables.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        at += 2 + length


def _webp(content: bytes) -> tuple[int, int] | None:
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        return None
    match content[12:16]:
        case b"VP8X":
            width, height = (int.from_bytes(content[k : k + 3], "little") + 1 for k in (24, 27))
        case b"VP8L":
            bits = int.from_bytes(content[21:25], "little")
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = (value & 0x3FFF for value in struct.unpack("<HH", content[26:30]))
        case _:
            return None
    return width, height
