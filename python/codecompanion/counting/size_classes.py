"""Estimates the tokens of non-text content by size class (R-505): images, PDF pages, encrypted blocks; never by base64.

Every number is a class, not a count: the first report corrects it. Each number names its source; "recorded" means the
exchanges in `../shared/data/wire`, whose requests contain the image or document and whose replies report its cost.
"""

from __future__ import annotations

import math

from codecompanion.model.messages import DocumentPart, ImagePart

# Tokens of an image of unknown size: the most that a provider charges after downscaling.
UNKNOWN_IMAGE_TOKENS = 1600
# Tokens of a PDF page. Anthropic counts it as an image and as text: 1,590 tokens recorded for an almost empty one,
# 2,680 for a full one; OpenAI about 250 and 1,000. The more expensive provider's value is used.
PAGE_TOKENS = 2500
# Bytes per page, for a PDF with an unknown number of pages: text with fonts takes 13 to 60 KB a page, scans more.
BYTES_PER_PAGE = 50_000
# Recorded encrypted reasoning: the first 1,000 characters cost nothing, then one token per 6.2 (OpenAI, up to 2,500
# tokens) or 6.6 (Anthropic).
_MIN_ENCRYPTED_CHARS, _ENCRYPTED_CHARS_PER_TOKEN = 1000, 6.4
# Recorded encrypted compactions (OpenAI): 3,684 and 4,068 characters for 297 and 342 tokens.
_COMPACTED_CHARS_PER_TOKEN = 9.0


def image_tokens(image: ImagePart) -> int:
    """Return the tokens of an image by its size, never by its base64 length.

    The larger of the two published rules applies: 85 + 170 per 512-pixel tile after fitting into 2048 x 2048 and 768 on
    the short side (OpenAI), or pixels / 750 up to 1,600 (Anthropic). `detail="low"` counts as a flat 85.
    """
    if image.detail == "low":
        return 85
    width, height = image.width, image.height
    if width <= 0 or height <= 0:
        return UNKNOWN_IMAGE_TOKENS
    by_pixels = min(1600, math.ceil(width * height / 750))
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / max(1.0, min(width, height) * scale))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return max(by_pixels, 85 + 170 * tiles)


def document_tokens(document: DocumentPart) -> int:
    """Return the tokens of a PDF by its number of pages, or by its bytes if that is unknown."""
    pages = document.pages if document.pages > 0 else math.ceil(document.size_bytes / BYTES_PER_PAGE)
    return PAGE_TOKENS * max(1, pages)


def encrypted_tokens(chars: int) -> int:
    """Return the tokens of a signed or encrypted block with this many characters."""
    return max(0, round((chars - _MIN_ENCRYPTED_CHARS) / _ENCRYPTED_CHARS_PER_TOKEN))


def compaction_tokens(chars: int) -> int:
    """Return the number of tokens that a provider's encrypted compaction of `chars` characters adds to a prompt."""
    return max(0, round((chars - _MIN_ENCRYPTED_CHARS) / _COMPACTED_CHARS_PER_TOKEN))
