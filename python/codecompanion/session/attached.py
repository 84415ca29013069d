"""What a user attaches to a chat: files, buffers, images, selections and rules, as tagged messages (R-548, R-549)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from codecompanion.errors import InputError
from codecompanion.events import ContextItem
from codecompanion.messages import GO_ON_TAG, SUMMARY_TAG, ImagePart, Message, TextPart

MAX_IMAGE_BYTES = 20_000_000
_IMAGE_TYPES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
_OURS = (SUMMARY_TAG, GO_ON_TAG)
_FENCED = {"file": "The content of `{path}`:", "buffer": "The buffer `{path}`:", "selection": "Selected in `{path}`:"}


def text_attachment(kind: str, path: str, text: str, message_id: str) -> Message:
    """Return a text attachment, fenced so that its own fences cannot end it."""
    fence = "```"
    while fence in text:
        fence += "`"
    language = Path(path).suffix.lstrip(".") if kind in _FENCED else ""
    intro = _FENCED.get(kind, "{path}").format(path=path)
    return Message(
        id=message_id, role="user", tag=kind, path=path, content=f"{intro}\n{fence}{language}\n{text}\n{fence}"
    )


def image_attachment(path: str, data: bytes, message_id: str) -> tuple[Message, str]:
    """Return an image attachment and the sha256 its bytes must be stored under.

    Raises:
        InputError: not an image type that models read, or too large; names the path.
    """
    mime = next((mime for magic, mime in _IMAGE_TYPES.items() if data.startswith(magic)), "")
    if not mime:
        raise InputError(f"{path} is not an image; expected PNG, JPEG, GIF or WebP")
    if len(data) > MAX_IMAGE_BYTES:
        raise InputError(f"{path} has {len(data)} bytes; at most {MAX_IMAGE_BYTES} can be sent")
    digest = hashlib.sha256(data).hexdigest()
    width, height = _png_size(data) if mime == "image/png" else (0, 0)
    part = ImagePart(mime=mime, sha256=digest, path=path, size_bytes=len(data), width=width, height=height)
    content = (TextPart(f"The image `{path}`:"), part)
    return Message(id=message_id, role="user", tag="image", path=path, content=content), digest


def _png_size(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def context_items(messages: Iterable[Message]) -> tuple[ContextItem, ...]:
    """Return the context block: what is attached to the next request, in order; placeholders are not."""
    return tuple(
        ContextItem(id=message.id, kind=message.tag, label=message.path or message.id, tokens=message.tokens)
        for message in messages
        if message.role == "user"
        and message.tag
        and message.tag not in (SUMMARY_TAG, GO_ON_TAG)
        and not message.compacted
    )
