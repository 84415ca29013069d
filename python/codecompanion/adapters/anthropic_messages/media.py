"""Converts images and PDFs to content blocks, within the limits of the Messages API (pages "Vision" and "PDF support").

An image that cannot be sent is replaced by a sentence, so that the model knows about it. Limits and media types are
checked on the bytes, because a wrongly declared media type is refused as well.
"""

from __future__ import annotations

import logging
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Any

from codecompanion.adapters.anthropic_messages.options import MessagesOptions
from codecompanion.adapters.base import BlobReader
from codecompanion.errors import StoreError
from codecompanion.formats.regex import regex
from codecompanion.model.messages import DocumentPart, ImagePart

_log = logging.getLogger(__name__)

MAX_IMAGES = 100
MAX_BASE64_BYTES = 5 * 1024 * 1024
MAX_PIXELS = 8_000
"""Maximum length of the longer side in pixels; `MAX_PIXELS_OF_MANY` if a request has more than `MANY_IMAGES`."""
MANY_IMAGES = 20
MAX_PIXELS_OF_MANY = 2_000
MAX_PDF_BYTES = 24 * 1024 * 1024
"""Maximum size of a PDF: encoded as base64, it fills the 32 MB allowed for a whole request."""
_DATA_URL = regex(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,", re.IGNORECASE)


class Media:
    """Creates blocks for one adapter's images and documents."""

    def __init__(self, options: MessagesOptions, read_blob: BlobReader) -> None:
        self._options = options
        self._read_blob = read_blob

    def image(self, part: ImagePart) -> dict[str, Any]:
        """Return the image block, or a text block that says why the image is missing."""
        name = _name(part.path or part.url.partition(",")[0][:80] or part.sha256[:12])
        if not self._options.image_input:
            return note(f"The image {name} was not sent: this model does not accept images.")
        if part.url and not _DATA_URL.match(part.url):
            return {"type": "image", "source": {"type": "url", "url": part.url}}
        content = self._read(part.sha256, part.url, name)
        if content is None:
            return note(f"The image {name} cannot be read.")
        media_type = sniff_media_type(content)
        if media_type is None:
            return note(f"The image {name} was not sent: it is neither PNG, JPEG, GIF nor WebP.")
        data = b64encode(content).decode()
        if len(data) > MAX_BASE64_BYTES:
            size = len(content) / 1024 / 1024
            return note(f"The image {name} was not sent: it is {size:.1f} MB, over the provider's limit.")
        if longest_side(part) > MAX_PIXELS:
            return note(f"The image {name} was not sent: it is too large ({part.width} x {part.height} pixels).")
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}

    def document(self, part: DocumentPart) -> dict[str, Any]:
        """Return the document block, or a text block that says why the document is missing."""
        name = _name(part.path or part.sha256[:12])
        if not self._options.document_input:
            return note(f"The document {name} was not sent: this model does not accept PDFs.")
        content = self._read(part.sha256, "", name)
        if content is None:
            return note(f"The document {name} cannot be read.")
        if b"%PDF-" not in content[:1024]:
            return note(f"The document {name} was not sent: it is not a PDF.")
        if len(content) > MAX_PDF_BYTES:
            size = len(content) / 1024 / 1024
            return note(f"The document {name} was not sent: it is {size:.1f} MB, over the provider's limit.")
        source = {"type": "base64", "media_type": "application/pdf", "data": b64encode(content).decode()}
        return {"type": "document", "source": source, "title": name}

    def _read(self, sha256: str, url: str, name: str) -> bytes | None:
        try:
            return b64decode(url.partition(",")[2], validate=True) if url else self._read_blob(sha256)
        except (LookupError, OSError, StoreError, Base64Error) as error:
            _log.warning("%s could not be read: %s", name, error)
            return None


def note(text: str) -> dict[str, Any]:
    """Return a text block that replaces omitted content."""
    return {"type": "text", "text": f"[{text}]"}


def left_out(part: ImagePart) -> dict[str, Any]:
    """Return the replacement for an excess image, or for an image too large for a request with many others."""
    return note(f"The image {_name(part.path or part.sha256[:12])} was not sent again: there are too many images.")


def longest_side(part: ImagePart) -> int:
    """Return the length of the longer side in pixels, or 0 if it is unknown."""
    return max(part.width, part.height)


def sniff_media_type(content: bytes) -> str | None:
    """Return the media type of an image from its first bytes, or None if the API does not accept it."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return None


def _name(text: str) -> str:
    return text.replace("\n", " ").replace("[", "(").replace("]", ")")[:200]
