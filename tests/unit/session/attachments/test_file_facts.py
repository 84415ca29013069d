"""Image sizes and PDF page counts, read from the bytes that the formats prescribe."""

from __future__ import annotations

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.session.attachments.file_facts import count_pages, image_size, image_type, is_pdf

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x80\x00\x00\x01\xe0\x08\x06\x00\x00\x00"
GIF = b"GIF89a\x2c\x01\xc8\x00\xf7\x00\x00"
APP0 = b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
TABLE = b"\xff\xdb\x00\x05\x00\xff\xc0"  # a quantisation table whose bytes look like a frame
FRAME = b"\x00\x11\x08\x01\xe0\x02\x80\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"
BASELINE = b"\xff\xd8" + APP0 + TABLE + b"\xff\xff\xc0" + FRAME
PROGRESSIVE = b"\xff\xd8" + APP0 + b"\xff\xc4\x00\x05\x00\x00\x00" + b"\xff\xc2" + FRAME
# One pixel, as libwebp writes it: lossy and lossless.
LOSSY = base64.b64decode("UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAwA0JaQAA3AA/vuUAAA=")
LOSSLESS = base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
EXTENDED = b"RIFF\x00\x00\x00\x00WEBPVP8X\n\x00\x00\x00\x10\x00\x00\x00\x7f\x02\x00\xdf\x01\x00"


@pytest.mark.parametrize(
    ("data", "mime", "size"),
    [
        (PNG, "image/png", (640, 480)),
        (GIF, "image/gif", (300, 200)),
        (BASELINE, "image/jpeg", (640, 480)),
        (PROGRESSIVE, "image/jpeg", (640, 480)),
        (LOSSY, "image/webp", (1, 1)),
        (LOSSLESS, "image/webp", (1, 1)),
        (EXTENDED, "image/webp", (640, 480)),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "", (0, 0)),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg", (0, 0)),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp", (0, 0)),
        (b"hello", "", (0, 0)),
        (b"", "", (0, 0)),
    ],
)
def test_an_image_reports_its_type_and_size(data: bytes, mime: str, size: tuple[int, int]) -> None:
    """Width first; a truncated header reports nothing."""
    assert (image_type(data), image_size(data)) == (mime, size)


@given(
    st.sampled_from([PNG, GIF, BASELINE, PROGRESSIVE, LOSSY, LOSSLESS, EXTENDED]),
    st.integers(0, 60),
    st.binary(max_size=8),
)
def test_a_damaged_image_is_not_an_error(data: bytes, at: int, rubbish: bytes) -> None:
    """Random bytes anywhere in an image raise no error: the provider decides."""
    width, height = image_size(data[:at] + rubbish + data[at + len(rubbish) :])
    assert width >= 0
    assert height >= 0


def pdf(*objects: bytes) -> bytes:
    return b"%PDF-1.7\n" + b"\n".join(b"%d 0 obj\n%s\nendobj" % pair for pair in enumerate(objects, 1)) + b"\n%%EOF"


PAGE = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>"
PACKED = zlib.compress(b"3 0 4 57 << /Type/Pages /Kids [4 0 R 5 0 R 6 0 R] /Count 3 >>" + PAGE)


def object_stream(data: bytes) -> bytes:
    return b"<< /Type /ObjStm /N 2 /First 8 /Filter /FlateDecode /Length %d >>\nstream\r\n%s\nendstream" % (
        len(data),
        data,
    )


@pytest.mark.parametrize(
    ("data", "pages"),
    [
        (pdf(b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", PAGE), 1),
        (pdf(b"<< /Count 12 /Kids [3 0 R] /Type /Pages >>", PAGE), 12),
        # A tree of trees: the root counts all leaves. An outline has a count, too.
        (pdf(b"<</Type/Pages/Count 2>>", b"<</Type/Pages/Count 40>>", b"<</Type /Outlines /Count 900>>"), 40),
        (pdf(PAGE, PAGE, b"<< /Type /PageLabel >>"), 2),
        (pdf(b"<< /Linearized 1 /L 9 /N 25 /O 3 >>", b"<< /Type /Pages /Count 3 >>"), 25),
        (pdf(object_stream(PACKED)), 3),
        (pdf(object_stream(PACKED[:20])), 0),
        (pdf(object_stream(b"not packed at all")), 0),
        (b"%PDF-1.4", 0),
    ],
)
def test_the_pages_of_a_pdf_are_counted(data: bytes, pages: int) -> None:
    """Pages are counted in plain, linearised and compressed PDFs; the result is 0 if the count cannot be determined."""
    assert is_pdf(data)
    assert count_pages(data) == pages


def test_a_pdf_may_begin_with_other_bytes() -> None:
    """The standard allows up to a kilobyte before the header; a text about PDFs is not a PDF."""
    assert is_pdf(b"\x00" * 1000 + b"%PDF-1.4")
    assert not is_pdf(b" " * 2000 + b"%PDF-1.4")
    assert not is_pdf(b"PDF")
