"""Images and PDFs as attachments."""

from __future__ import annotations

import hashlib

import pytest

from codecompanion.context.editing.replace_attachments import _placeholder
from codecompanion.context.strategy_parameters import ReplaceAttachments
from codecompanion.errors import InputError
from codecompanion.model.messages import DocumentPart, ImagePart, TextPart
from codecompanion.session.attachments.attached import (
    MAX_DOCUMENT_BYTES,
    context_items,
    document_attachment,
    image_attachment,
    is_document_path,
)
from tests.unit.session.attachments.test_file_facts import BASELINE, PAGE, pdf


def test_a_pdf_is_a_document_with_its_pages() -> None:
    """The words before it name it; the context block shows its length."""
    data = pdf(PAGE, PAGE)
    message, digest = document_attachment("docs/plan.pdf", data, "m")
    assert digest == hashlib.sha256(data).hexdigest()
    assert message.tag == "document"
    assert message.content == (
        TextPart("The document `docs/plan.pdf` (2 pages):"),
        DocumentPart(sha256=digest, path="docs/plan.pdf", size_bytes=len(data), pages=2),
    )
    (item,) = context_items([message])
    assert (item.kind, item.label, item.note) == ("document", "docs/plan.pdf", "2 pages")


def test_a_pdf_of_unknown_length_is_attached_without_it() -> None:
    """The attachment names no length, and its tokens are estimated from its size."""
    message, _ = document_attachment("a.pdf", b"%PDF-1.4", "m")
    assert message.text == "The document `a.pdf`:"
    assert context_items([message])[0].note == ""


def test_compaction_replaces_a_file_by_its_placeholder() -> None:
    """R-523: the placeholder says that the file can be read again."""
    message, _ = document_attachment("a.pdf", pdf(PAGE), "m")
    assert _placeholder(message, ReplaceAttachments()) == (
        "<important>File content for `a.pdf` cleared during compaction. Re-read the file if you need it.</important>"
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"PK\x03\x04", "is not a PDF"), (b"%PDF-" + b" " * MAX_DOCUMENT_BYTES, "at most 32000000 can be sent")],
)
def test_a_type_that_no_provider_accepts_is_refused(data: bytes, words: str) -> None:
    """The file is refused before it is stored, with an error that names it."""
    with pytest.raises(InputError, match=words):
        document_attachment("a.pdf", data, "m")


def test_an_image_has_its_size() -> None:
    """The token count needs the image's width and height (R-505)."""
    message, _ = image_attachment("a.jpg", BASELINE, "m")
    image = message.images[0]
    assert isinstance(image, ImagePart)
    assert (image.mime, image.width, image.height) == ("image/jpeg", 640, 480)
    with pytest.raises(InputError, match="is not an image"):
        image_attachment("sound.wav", b"RIFF\x00\x00\x00\x00WAVE", "m")


def test_a_document_is_recognised_by_its_name() -> None:
    """The extension may be in upper or lower case."""
    assert is_document_path("a/B.PDF")
    assert not is_document_path("a.pdf.txt")
