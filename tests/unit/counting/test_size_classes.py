"""The token cost of images, pages and encrypted blocks (R-505)."""

from __future__ import annotations

from codecompanion.counting.size_classes import (
    BYTES_PER_PAGE,
    PAGE_TOKENS,
    UNKNOWN_IMAGE_TOKENS,
    compaction_tokens,
    document_tokens,
    encrypted_tokens,
    image_tokens,
)
from codecompanion.model.messages import DocumentPart, ImagePart


def test_an_image_costs_by_its_pixels() -> None:
    small, large = ImagePart(width=256, height=256), ImagePart(width=4000, height=3000)
    assert image_tokens(small) < image_tokens(large) == 1600
    assert image_tokens(ImagePart()) == UNKNOWN_IMAGE_TOKENS
    assert image_tokens(ImagePart(detail="low", width=4000, height=3000)) == 85


def test_a_pdf_costs_by_its_pages_or_by_its_bytes_if_they_are_unknown() -> None:
    assert document_tokens(DocumentPart(pages=4, size_bytes=10**9)) == 4 * PAGE_TOKENS
    assert document_tokens(DocumentPart(size_bytes=3 * BYTES_PER_PAGE)) == 3 * PAGE_TOKENS
    assert document_tokens(DocumentPart()) == PAGE_TOKENS


def test_a_page_costs_between_a_recorded_empty_and_full_one() -> None:
    """Recorded with Claude Sonnet 4.5 for two one-page PDFs: 1,590 and 2,680 tokens."""
    assert 1590 < document_tokens(DocumentPart(pages=1)) < 2680


def test_an_encrypted_block_alone_counts_nothing() -> None:
    assert encrypted_tokens(0) == encrypted_tokens(900) == 0
    assert encrypted_tokens(7400) == 1000


def test_an_encrypted_compaction_counts_as_recorded() -> None:
    """Two compactions recorded from OpenAI, with the tokens in their usage; 100 characters of JSON surround each."""
    for chars, told in ((3684, 297), (4068, 342)):
        assert abs(compaction_tokens(chars + 100) - told) <= 0.05 * told
    assert compaction_tokens(300) == 0
