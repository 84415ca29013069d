"""Reads the type, dimensions and page count of attached images and PDFs, for token counts and limits.

Pure and without dependencies. Unreadable values are returned as 0 and never raise an error: the provider decides
whether it can use the file.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from codecompanion.formats.regex import regex

_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG markers of frame headers (SOF0…SOF15), which contain the image size; the three excluded markers have other
meanings.
"""
_PDF_HEAD = 1024
"""Number of bytes within which `%PDF-` must begin (ISO 32000-1, annex H)."""
_MAX_UNPACKED = 64_000_000
_OBJECT_STREAM = regex(rb"/Type\s*/ObjStm\b.{0,400}?stream\r?\n(.*?)endstream", re.DOTALL)
_LINEARIZED = regex(rb"/Linearized\b[^>]{0,200}?/N\s+(\d{1,9})\b")
_PAGE_TREE = regex(
    rb"/Type\s*/Pages\b[^>]*?/Count\s+(\d{1,9})\b|/Count\s+(\d{1,9})\b[^<>]*?/Type\s*/Pages\b", re.DOTALL
)
_PAGE = regex(rb"/Type\s*/Page(?![A-Za-z])")


def image_type(data: bytes) -> str:
    """Return the MIME type of an image that models read, or "" for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def image_size(data: bytes) -> tuple[int, int]:
    """Return (width, height) in pixels, (0, 0) if the header does not have them."""
    match image_type(data):
        case "image/png":
            return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        case "image/gif":
            return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
        case "image/jpeg":
            return _jpeg_size(data)
        case "image/webp":
            return _webp_size(data)
        case _:
            return 0, 0


def is_pdf(data: bytes) -> bool:
    """Return whether the bytes are a PDF."""
    return b"%PDF-" in data[:_PDF_HEAD]


def count_pages(data: bytes) -> int:
    """Return the number of pages of a PDF, or 0 if it cannot be determined cheaply.

    The number is read from the linearization header or the largest page tree, otherwise the pages are counted;
    compressed object streams are unpacked for this.
    """
    linearized = _LINEARIZED.search(data[: 2 * _PDF_HEAD])
    if linearized:
        return int(linearized[1])
    trees, pages = 0, 0
    for text in (data, *_unpacked(data)):
        trees = max([trees, *(int(first or second) for first, second in _PAGE_TREE.findall(text))])
        pages += len(_PAGE.findall(text))
    return trees or pages


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            return 0, 0
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _JPEG_FRAMES:
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        elif marker == 0x01 or 0xD0 <= marker <= 0xD7:  # markers without a segment
            at += 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X" if len(data) >= 30:
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L" if len(data) >= 25:
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 " if len(data) >= 30:
            width, height = int.from_bytes(data[26:28], "little"), int.from_bytes(data[28:30], "little")
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return 0, 0


def _unpacked(data: bytes) -> Iterator[bytes]:
    """Yield the unpacked object streams of a PDF up to a total size, skipping damaged ones."""
    left = _MAX_UNPACKED
    for found in _OBJECT_STREAM.finditer(data):
        try:
            text = zlib.decompressobj().decompress(found[1], left)
        except zlib.error:
            continue
        left -= len(text)
        yield text
        if left <= 0:
            return
