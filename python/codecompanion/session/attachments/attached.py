"""Attachments of a chat as tagged messages: files, buffers, images, PDFs, selections, rules (R-548, R-549)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from codecompanion.errors import InputError
from codecompanion.formats.fencing import fenced, label_of
from codecompanion.model.live_files import NO_FILES, Files
from codecompanion.model.messages import (
    MEMORY_TAG,
    PIN_TAG,
    REAPPLIED_TAG,
    REVERTED_TAG,
    AttachedFile,
    DocumentPart,
    ImagePart,
    Message,
    TextPart,
    is_attachment,
)
from codecompanion.session.attachments.file_facts import count_pages, image_size, image_type, is_pdf
from codecompanion.session.attachments.pins import title_of
from codecompanion.wire.events import ContextItem

CHANGE_TAGS = (REVERTED_TAG, REAPPLIED_TAG)
"""Tags of notes about reverted or reapplied file changes, which the chat shows as sentences."""
MAX_IMAGE_BYTES = 20_000_000
MAX_DOCUMENT_BYTES = 32_000_000
"""Maximum size of a PDF: the limit for one request at both Anthropic and OpenAI."""
_FENCED = {"file": "The content of `{path}`:", "buffer": "The buffer `{path}`:", "selection": "Selected in `{path}`:"}
_TITLES = {
    "page": "The text of the page {path}:",
    "symbols": "Definitions in `{path}`, each with its lines:",
    "help": "From Neovim's help, {path}:",
    "terminal": "The end of the output of terminal {path}:",
    "now": "The time of this attachment:",
    "text": "`{path}`, as attached:",
}
"""Headings of attachments that are not files; their fenced code blocks have no language."""


def text_attachment(kind: str, path: str, text: str, message_id: str, file: AttachedFile | None = None) -> Message:
    """Return a text attachment as a fenced code block that fences inside the text cannot end."""
    intro = (_FENCED.get(kind) or _TITLES.get(kind, "{path}")).format(path=path)
    content = f"{intro}\n{fenced(text, label_of(path) if kind in _FENCED else '')}"
    return Message(id=message_id, role="user", tag=kind, path=path, content=content, file=file)


def image_attachment(path: str, data: bytes, message_id: str) -> tuple[Message, str]:
    """Return an image attachment, and the sha256 under which its bytes must be stored.

    Raises:
        InputError: not an image type that models read, or too large; the error names the path.
    """
    mime = image_type(data)
    if not mime:
        raise InputError(f"{path} is not an image; expected PNG, JPEG, GIF or WebP")
    if len(data) > MAX_IMAGE_BYTES:
        raise InputError(f"{path} has {len(data)} bytes; at most {MAX_IMAGE_BYTES} can be sent")
    digest = hashlib.sha256(data).hexdigest()
    width, height = image_size(data)
    part = ImagePart(mime=mime, sha256=digest, path=path, size_bytes=len(data), width=width, height=height)
    content = (TextPart(f"The image `{path}`:"), part)
    return Message(id=message_id, role="user", tag="image", path=path, content=content), digest


def document_attachment(path: str, data: bytes, message_id: str) -> tuple[Message, str]:
    """Return a PDF attachment, and the sha256 under which its bytes must be stored.

    Raises:
        InputError: not a PDF, or too large; the error names the path.
    """
    if not is_pdf(data):
        raise InputError(f"{path} is not a PDF, despite its name")
    if len(data) > MAX_DOCUMENT_BYTES:
        raise InputError(f"{path} has {len(data)} bytes; at most {MAX_DOCUMENT_BYTES} can be sent")
    digest = hashlib.sha256(data).hexdigest()
    part = DocumentPart(sha256=digest, path=path, size_bytes=len(data), pages=count_pages(data))
    pages = f" ({_pages(part)})" if part.pages else ""
    content = (TextPart(f"The document `{path}`{pages}:"), part)
    return Message(id=message_id, role="user", tag="document", path=path, content=content), digest


def is_document_path(path: str) -> bool:
    """Return whether a file with this name is attached as a document."""
    return Path(path).suffix.lower() == ".pdf"


def _pages(part: DocumentPart) -> str:
    return f"{part.pages} page{'s' if part.pages > 1 else ''}"


def context_items(
    messages: Iterable[Message], files: Files = NO_FILES, scaled: Callable[[int], int] = int
) -> tuple[ContextItem, ...]:
    """Return the items of the context block: the attachments of the next request, in order.

    Placeholders are left out, except those of live `files`, whose changes are still sent. `scaled` converts a token
    estimate to the chat model's count.
    """
    return tuple(
        ContextItem(
            id=message.id,
            kind="memory" if message.tag == MEMORY_TAG else message.tag or "",
            label=title_of(message) if message.tag == PIN_TAG else message.path or message.id,
            tokens=scaled(message.tokens),
            note=_note(message),
            live=_is_live(message, files),
        )
        for message in messages
        if (is_attachment(message) or message.tag == PIN_TAG) and message.tag not in CHANGE_TAGS
        if not message.compacted or _is_live(message, files)
    )


def _is_live(message: Message, files: Files) -> bool:
    """Return whether changes to the attachment are sent; an attachment still waiting to join has its own flag."""
    known = files.get(message.path or "") if message.file is not None else None
    if known is None or known.item != message.id:
        return message.file is not None and message.file.live and not message.compacted
    return known.live


def _note(message: Message) -> str:
    if message.compacted:
        return "summarised, changes are still sent"
    if any(one.restores and one.text in message.text for one in message.references):
        return "already sent"
    parts = () if isinstance(message.content, str) else message.content
    return next((_pages(part) for part in parts if isinstance(part, DocumentPart) and part.pages), "")
