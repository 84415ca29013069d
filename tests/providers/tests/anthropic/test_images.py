"""The fake Messages server reads the size of an image from its first bytes, and charges for it."""

from __future__ import annotations

import base64
import struct

import pytest

from tests.providers.anthropic.images import image_size, image_tokens
from tests.providers.tests.anthropic.bodies import body, image, refusal_of, user

APP0 = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF" + b"\0" * 10
CONTENTS = {
    "png": b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 300, 200),
    "gif": b"GIF89a" + struct.pack("<HH", 300, 200),
    "jpeg": b"\xff\xd8" + APP0 + b"\xff\xc2" + struct.pack(">HBHH", 11, 8, 200, 300),
    "webp": b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + (299).to_bytes(3, "little") + (199).to_bytes(3, "little"),
}
LOSSY = b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 10 + struct.pack("<HH", 300, 200)
LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L" + b"\0" * 5 + (299 | 199 << 14).to_bytes(4, "little")


def source(content: bytes, kind: str) -> dict[str, str]:
    return {"type": "base64", "media_type": f"image/{kind}", "data": base64.b64encode(content).decode()}


@pytest.mark.parametrize(
    ("content", "kind"),
    [*((content, kind) for kind, content in CONTENTS.items()), (LOSSY, "webp"), (LOSSLESS, "webp")],
)
def test_the_size_of_every_accepted_format_is_known(content: bytes, kind: str) -> None:
    """An image costs one token per patch of 28 pixels."""
    assert image_size(source(content, kind)) == (300, 200)
    assert image_tokens(source(content, kind)) == 11 * 8


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        *((content, other) for kind, content in CONTENTS.items() for other in CONTENTS if other != kind),
        (b"RIFF\0\0\0\0WEBPnope", "webp"),
        (CONTENTS["png"][:18], "png"),
        (CONTENTS["jpeg"][:12], "jpeg"),
        (CONTENTS["png"], "bmp"),
    ],
)
def test_an_invalid_image_has_no_size(content: bytes, kind: str) -> None:
    """The images are truncated or mislabelled."""
    assert image_size(source(content, kind)) is None


def test_an_unmeasurable_image_costs_the_maximum() -> None:
    """A large image costs no more, because it is scaled down."""
    remote = {"type": "url", "url": "https://example.org/a.png"}
    assert image_tokens(remote) == 1568
    assert image_tokens(image(2000)["source"]) == 1568
    assert image_size({"type": "base64", "media_type": "image/png", "data": "not base64"}) is None
    assert (
        refusal_of(body(user({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}))) is None
    )
