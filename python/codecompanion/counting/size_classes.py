"""What costs tokens without being text, by size class (R-505): images, PDF pages, encrypted blocks, never base64.

Every number is a class, not a count: the first report corrects it. Sources are named at each; "recorded" means the
exchanges of `../shared/data/wire`, whose requests hold the image or document and whose replies say what it cost.
"""

from __future__ import annotations

import math

from codecompanion.model.messages import DocumentPart, ImagePart

# An image whose size nobody knows counts as the most expensive one a provider charges for after its own down-scaling.
UNKNOWN_IMAGE_TOKENS = 1600
# Anthropic takes a page as an image and as text: 1,590 tokens recorded for one almost empty, 2,680 for a full one;
# OpenAI about 250 and 1,000. Counted like the more expensive provider's.
PAGE_TOKENS = 2500
# For a PDF whose pages could not be counted; text with its fonts takes 13 to 60 KB a page, scans more.
BYTES_PER_PAGE = 50_000
# Recorded encrypted reasoning: 1,000 characters hold none, then 6.2 (OpenAI, up to 2,500 tokens), 6.6 (Anthropic) each.
_MIN_ENCRYPTED_CHARS, _ENCRYPTED_CHARS_PER_TOKEN = 1000, 6.4
# Recorded encrypted compactions (OpenAI): 3,684 and 4,068 characters for 297 and 342 tokens.
_COMPACTED_CHARS_PER_TOKEN = 9.0


def image_tokens(image: ImagePart) -> int:
    """Return what an image costs by its size; never its base64 length.

    The larger of the two published rules: 85 + 170 per 512-pixel tile after fitting into 2048 x 2048 and 768 on the
    short side (OpenAI), pixels / 750 up to 1,600 (Anthropic). `detail="low"` is one flat 85.
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
    """Return what a PDF costs by its pages, by its bytes when the pages are unknown."""
    pages = document.pages if document.pages > 0 else math.ceil(document.size_bytes / BYTES_PER_PAGE)
    return PAGE_TOKENS * max(1, pages)


def encrypted_tokens(chars: int) -> int:
    """Return what a signed or encrypted block of so many characters holds."""
    return max(0, round((chars - _MIN_ENCRYPTED_CHARS) / _ENCRYPTED_CHARS_PER_TOKEN))


def compaction_tokens(chars: int) -> int:
    """Return what a provider's encrypted compaction of so many characters adds to a prompt."""
    return max(0, round((chars - _MIN_ENCRYPTED_CHARS) / _COMPACTED_CHARS_PER_TOKEN))
