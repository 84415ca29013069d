"""Converts a server's content to text and images: results, resources, prompts, and its requests to the model.

No size or type is trusted: text is limited, undecodable images are reported, and content that a model cannot read
(audio, archives) is replaced by its name.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from typing import Any

from codecompanion.formats.cutting import cut
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.mcp.server_types import Given, Image, McpError, SamplingRequest

MAX_TEXT_CHARS = 4_000_000
"""Maximum characters of one result; the rest is dropped, even from the log."""
MAX_IMAGES = 10
MAX_IMAGE_BYTES = 10_000_000
_MAX_LOG_CHARS = 2_000
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class _Joined:
    """Collects text and images in order, within limits."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.images: list[Image] = []
        self._room, self._missing = MAX_TEXT_CHARS, 0

    def add(self, text: str) -> None:
        kept = text[: self._room]
        self._room -= len(kept)
        self._missing += len(text) - len(kept)
        if kept or not text:
            self.texts.append(kept)

    def add_image(self, mime: str, encoded: str) -> None:
        what = f"an image ({mime[:60]})"
        if mime not in _IMAGES:
            return self.add(f"[{what} is left out: models accept only PNG, JPEG, GIF and WebP]")
        if len(encoded) > MAX_IMAGE_BYTES * 4 // 3 + 4:
            return self.add(f"[{what} is left out: it is larger than {MAX_IMAGE_BYTES // 1_000_000} MB]")
        if len(self.images) >= MAX_IMAGES:
            return self.add(f"[{what} is left out: the limit of {MAX_IMAGES} is reached]")
        try:
            self.images.append(Image(mime, base64.b64decode(encoded, validate=True)))
        except (binascii.Error, ValueError):
            self.add(f"[{what} is left out: its data is damaged]")

    def given(self, *, is_error: bool = False) -> Given:
        missing = [f"[… {self._missing:,} more characters were not kept …]"] if self._missing else []
        return Given(text="\n".join((*self.texts, *missing)), images=tuple(self.images), is_error=is_error)


def result_given(result: Any) -> Given:
    """Return the content of a `CallToolResult`; structured content is included only if no text repeats it."""
    joined = _Joined()
    for block in result.content:
        _add(joined, block)
    structured = result.structured_content
    if structured is not None and not _is_said(structured, joined.texts):
        joined.add(_as_json(structured))
    return joined.given(is_error=bool(result.is_error))


def resource_given(contents: Iterable[Any]) -> Given:
    """Return the content of a `ReadResourceResult`."""
    joined = _Joined()
    for one in contents:
        _add_resource(joined, one)
    return joined.given()


def prompt_given(messages: Sequence[Any]) -> Given:
    """Return a prompt's messages as one string, with a line before each model reply in it."""
    joined = _Joined()
    for message in messages:
        if message.role == "assistant":
            joined.add("[The prompt continues with a reply, as an example:]")
        _add(joined, message.content)
    return joined.given()


def sampling_request(params: Any) -> SamplingRequest:
    """Return the request in a `CreateMessageRequestParams`.

    Raises:
        McpError: the request has unsupported content (tools, images, audio).
    """
    if params.tools:
        raise McpError("it asks for a reply that calls tools")
    messages = []
    for message in params.messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        if any(block.type != "text" for block in blocks):
            raise McpError("it sends content that is not text")
        messages.append((message.role, "\n".join(block.text for block in blocks)))
    return SamplingRequest(messages=tuple(messages), system=params.system_prompt or "", max_tokens=params.max_tokens)


def log_text(data: Any) -> str:
    """Return a logging message as one line."""
    text = data if isinstance(data, str) else _as_json(data)
    return cut(" ".join(cut(text, 50 * _MAX_LOG_CHARS).split()), _MAX_LOG_CHARS)


def _add(joined: _Joined, block: Any) -> None:
    match block.type:
        case "text":
            joined.add(block.text)
        case "image":
            joined.add_image(block.mime_type, block.data)
        case "audio":
            joined.add(f"[audio ({block.mime_type[:60]}) is left out: the model cannot receive it]")
        case "resource_link":
            name = block.title or block.name
            about = f": {block.description}" if block.description else ""
            joined.add(f"[resource {name} at {block.uri}{about}]")
        case "resource":
            _add_resource(joined, block.resource)
        case _:
            joined.add(f"[content of unknown kind {str(block.type)[:40]!r} is left out]")


def _add_resource(joined: _Joined, resource: Any) -> None:
    text = getattr(resource, "text", None)
    if text is not None:
        return joined.add(text)
    mime = resource.mime_type or "of an unknown type"
    if mime in _IMAGES:
        return joined.add_image(mime, resource.blob)
    size = len(resource.blob) * 3 // 4
    return joined.add(f"[{resource.uri} is left out: {size:,} bytes {mime[:60]}, no text]")


def _is_said(structured: Any, texts: Sequence[str]) -> bool:
    """Return whether a string repeats the structured content, as servers do for older clients."""
    single = list(structured.values()) if isinstance(structured, dict) else []
    for text in texts:
        try:
            said = json.loads(text)
        except NOT_READABLE:
            said = text
        if said == structured or single in ([said], [text]):
            return True
    return False


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=1)
    except (TypeError, ValueError, RecursionError):
        return "[structured content that cannot be shown]"
