"""OpenAI's rules for the content of messages and tool results: wrong or empty parts, invalid images and files.

From the SDK's types, the guides on images and on file inputs, and publicly reported error bodies. Where they are
silent, the stricter interpretation is used: empty texts are refused (the endpoint was recorded to accept an empty
assistant message; endpoints that imitate it do not); images come only from the user and from tools; only PDF and plain
text files are accepted (the guide lists more, an error recorded from the endpoint names only PDF); limits are the
lowest ever published (500 images and 50 MB per request, 50 MB of files).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.providers.openai.refusal import refuse

MAX_IMAGES = 500
MAX_IMAGE_BYTES = 50_000_000
MAX_FILE_BYTES = 50_000_000
INPUT_PARTS = ("input_text", "input_image", "input_file")
_DATA_URL = re.compile(r"data:([a-z0-9.+-]+/[a-z0-9.+-]+);base64,(.*)", re.DOTALL)
_MAGIC = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
_EXPECTED_IMAGE = "Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1n')"
_NO_IMAGE = (
    "The image data you provided does not represent a valid image. Please check your input and try again with one of "
    "the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp']."
)


@dataclass
class Attachments:
    """Totals of the attachments of a request so far."""

    images: int = 0
    image_bytes: int = 0
    file_bytes: int = 0

    def check_parts(self, parts: Iterable[Any], param: str, allowed: tuple[str, ...]) -> None:
        """Refuse content that is empty, of a kind not in `allowed`, or over a limit."""
        empty = True
        for number, part in enumerate(parts):
            empty = False
            here = f"{param}[{number}]"
            if part["type"] not in allowed:
                names = " and ".join(f"'{name}'" for name in allowed)
                refuse(f"Invalid value: '{part['type']}'. Supported values are: {names}.", here, "invalid_value")
            match part["type"]:
                case "input_text" | "output_text":
                    check_text(part["text"], f"{here}.text")
                case "refusal":
                    check_text(part["refusal"], f"{here}.refusal")
                case "input_image":
                    self._check_image(part.get("image_url"), f"{here}.image_url")
                case "input_file":
                    self._check_file(part, here)
        if empty:
            refuse(f"Invalid '{param}': empty array.", param, "empty_array")

    def _check_image(self, url: Any, param: str) -> None:
        if not isinstance(url, str):
            refuse(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")
        self.images += 1
        if self.images > MAX_IMAGES:
            refuse(f"Too many images in request. Maximum is {MAX_IMAGES}.", "input", "invalid_value")
        if url.startswith("https://"):
            return
        kind, content = _decode(url, param, _EXPECTED_IMAGE)
        if kind not in _MAGIC:
            text = f"{_EXPECTED_IMAGE}, but got unsupported MIME type '{kind}'."
            refuse(f"Invalid '{param}'. {text}", param, "invalid_value")
        if not content.startswith(_MAGIC[kind]):
            refuse(_NO_IMAGE, "input", "image_parse_error")
        self.image_bytes += len(content)
        if self.image_bytes > MAX_IMAGE_BYTES:
            refuse("Total image size is too large.", "input", "image_file_too_large")

    def _check_file(self, part: Mapping[str, Any], param: str) -> None:
        if len([name for name in ("file_data", "file_url", "file_id") if part.get(name)]) != 1:
            refuse(f"Invalid '{param}': expected one of file_data, file_url and file_id.", param, "invalid_value")
        if part.get("file_id"):
            refuse(f"No such File object: {part['file_id']}", f"{param}.file_id", None, 404)
        if part.get("file_url"):
            return
        if not part.get("filename"):
            refuse(
                f"Missing required parameter: '{param}.filename'.", f"{param}.filename", "missing_required_parameter"
            )
        expected = "Expected a base64-encoded data URL with a MIME type (e.g. 'data:application/pdf;base64,JVBERi0=')"
        kind, content = _decode(part["file_data"], f"{param}.file_data", expected)
        is_pdf = kind == "application/pdf" and content.startswith(b"%PDF-") and _ends(part["filename"], ".pdf")
        if not is_pdf and not kind.startswith("text/"):
            text = "The file type you uploaded is not supported. Please try again with a pdf"
            refuse(text, "input", "unsupported_file")
        self.file_bytes += len(content)
        if self.file_bytes > MAX_FILE_BYTES:
            refuse("The files of this request are larger than 50 MB.", "input", "file_too_large")


def _ends(filename: str, ending: str) -> bool:
    return filename.lower().endswith(ending)


def check_text(text: str, param: str) -> None:
    """Refuse an empty text."""
    if not text:
        limits = "Expected a string with minimum length 1, but got an empty string instead."
        refuse(f"Invalid '{param}': empty string. {limits}", param, "empty_string")


def _decode(url: str, param: str, expected: str) -> tuple[str, bytes]:
    """Return the media type and the bytes of a data URL."""
    found = _DATA_URL.fullmatch(url)
    if not found:
        refuse(f"Invalid '{param}'. {expected}, but got a value without the 'data:' prefix.", param, "invalid_value")
    try:
        content = base64.b64decode(found[2], validate=True)
    except binascii.Error:
        refuse(f"Invalid '{param}'. {expected}, but got an invalid base64-encoded value.", param, "invalid_value")
    if not content:
        refuse(f"Invalid '{param}'. {expected}, but got empty base64-encoded bytes.", param, "invalid_value")
    return found[1], content
