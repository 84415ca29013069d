"""Renders one message as Responses items: a pure function of the message, its call ids and the options (R-146).

A reply becomes several items in the order in which the model wrote them: encrypted reasoning, text, calls (`CallMark`
contains their positions). Reasoning is sent back only to the endpoint that encrypted it, and only with the item that
follows it: otherwise the endpoint answers 400. Item ids are omitted, except for reasoning, which is encrypted together
with its id: nothing is stored (`store: false`), so the ids refer to nothing.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from pathlib import PurePosixPath
from typing import Any, assert_never

import msgspec

from codecompanion.adapters.base import BlobReader
from codecompanion.adapters.function_names import function_name
from codecompanion.adapters.openai_chat.render import NO_OUTPUT, encode
from codecompanion.adapters.openai_chat.tool_deltas import is_json_object
from codecompanion.adapters.openai_responses.check_items import PHASES
from codecompanion.adapters.openai_responses.options import ResponsesOptions
from codecompanion.errors import StoreError
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import (
    CallMark,
    CompactionPart,
    DocumentPart,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
)

_log = logging.getLogger(__name__)

Item = dict[str, Any]
# Keys that the endpoint accepts back in its own items; its responses have other fields that it refuses as input.
ENCRYPTED_KEYS = {
    "reasoning": frozenset(["type", "id", "summary", "content", "encrypted_content"]),
    "compaction": frozenset(["type", "id", "encrypted_content"]),
}


class ItemRenderer:
    """Renders messages for one endpoint; only encrypted parts from `origin` may be sent."""

    def __init__(self, options: ResponsesOptions, read_blob: BlobReader, origin: str) -> None:
        self._options, self._read_blob, self._origin = options, read_blob, origin

    def render(self, message: Message, call_ids: tuple[str, ...], *, with_encrypted: bool) -> list[Item]:
        """Return the items of a message; `call_ids` as returned by `CallIds.assign`."""
        match message.role:
            case "system":
                return [_message("developer", message.text)] if message.text else []
            case "user":
                return self._user(message)
            case "tool":
                return [{"type": "function_call_output", "call_id": call_ids[0], "output": self._output(message)}]
            case "assistant":
                return self._assistant(message, call_ids, with_encrypted=with_encrypted)
            case role:
                assert_never(role)

    def holds_compaction(self, message: Message) -> bool:
        """Return whether the message contains a compaction by this endpoint."""
        part = message.compaction
        return part is not None and part.origin == self._origin

    def _user(self, message: Message) -> list[Item]:
        if isinstance(message.content, str):
            return [_message("user", message.content)] if message.content else []
        content = self._content(message.content)
        return [{"type": "message", "role": "user", "content": content}] if content else []

    def _output(self, message: Message) -> str | list[Item]:
        if not isinstance(message.content, str) and any(
            isinstance(part, ImagePart | DocumentPart) for part in message.content
        ):
            return self._content(message.content)
        return message.text or NO_OUTPUT

    def _assistant(self, message: Message, call_ids: tuple[str, ...], *, with_encrypted: bool) -> list[Item]:
        parts: tuple[Part, ...] = message.content if not isinstance(message.content, str) else ()
        if isinstance(message.content, str) and message.content:
            parts = (TextPart(message.content),)
        marked = {part.position for part in parts if isinstance(part, CallMark)}
        parts += tuple(CallMark(position) for position in range(len(message.tool_calls)) if position not in marked)
        items: list[Item] = []
        encrypted: list[Item] = []
        for part in parts:
            if isinstance(part, ReasoningPart):
                # Of several consecutive reasoning items, only the last is followed by a valid item.
                made = self._reasoning(part) if with_encrypted and self._options.send_reasoning else []
                encrypted = made or encrypted
                continue
            made = self._reply_part(part, message.tool_calls, call_ids, with_encrypted=with_encrypted)
            if made:
                # Reasoning is sent together with its result.
                items += [*encrypted, *made]
                encrypted = []
        return items

    def _reply_part(
        self, part: Part, calls: tuple[ToolCall, ...], call_ids: tuple[str, ...], *, with_encrypted: bool
    ) -> list[Item]:
        match part:
            case TextPart(text=text, phase=phase):
                # A phase newer than the table would make every other endpoint reject the chat.
                fields = {"phase": phase} if phase and phase in PHASES else {}
                return [_message("assistant", text, **fields)] if text else []
            case CallMark(position=position):
                known = 0 <= position < len(calls)
                return [_call(calls[position], call_ids[position])] if known else []
            case CompactionPart():
                return self._compaction(part, with_encrypted=with_encrypted)
            case ReasoningPart() | ImagePart() | DocumentPart():
                return []
            case _:
                assert_never(part)

    def _reasoning(self, part: ReasoningPart) -> list[Item]:
        if not part.encrypted or part.origin != self._origin:
            return []
        return [_sendable(item) for item in _decoded(part.encrypted)]

    def _compaction(self, part: CompactionPart, *, with_encrypted: bool) -> list[Item]:
        if with_encrypted and part.origin == self._origin:
            return [_sendable(item) for item in _decoded(part.encrypted)]
        if not part.text:
            return []
        # From another origin: only its readable text.
        return [_message("user", f"<history_summary>\n{part.text}\n</history_summary>")]

    def _content(self, parts: tuple[Part, ...]) -> list[Item]:
        content: list[Item] = []
        for part in parts:
            if isinstance(part, TextPart) and part.text:
                content.append(_text(part.text))
            elif isinstance(part, ImagePart):
                content.append(self._image(part))
            elif isinstance(part, DocumentPart):
                content.append(self._document(part))
        return content

    def _image(self, part: ImagePart) -> Item:
        name = part.path or part.url.partition(",")[0][:80] or part.sha256[:12]
        if not self._options.image_input:
            return _text(f"[The image {name} was not sent: this model does not accept images.]")
        url = part.url or self._data_url(part.mime, part.sha256, name)
        if not url:
            return _text(f"[The image {name} cannot be read.]")
        return {"type": "input_image", "image_url": url, "detail": part.detail or "auto"}

    def _document(self, part: DocumentPart) -> Item:
        name = PurePosixPath(part.path or "").name or part.sha256[:12]
        name = name if name.lower().endswith(".pdf") else f"{name}.pdf"
        if not self._options.document_input:
            return _text(f"[The document {name} was not sent: this model does not accept PDFs.]")
        url = self._data_url(part.mime, part.sha256, name)
        if not url:
            return _text(f"[The document {name} cannot be read.]")
        return {"type": "input_file", "filename": name, "file_data": url}

    def _data_url(self, mime: str, sha256: str, name: str) -> str:
        try:
            return f"data:{mime};base64,{b64encode(self._read_blob(sha256)).decode()}"
        except (LookupError, OSError, StoreError) as error:
            _log.warning("%s could not be read: %s", name, error)
            return ""


def is_empty(message: Message) -> bool:
    """Return whether a message without calls has nothing to send."""
    if isinstance(message.content, str):
        return not message.content
    files = (ImagePart, DocumentPart) if message.role == "user" else ()
    return not any(
        (isinstance(part, TextPart) and part.text) or isinstance(part, (CompactionPart, *files))
        for part in message.content
    )


def _message(role: str, text: str, **more: str) -> Item:
    return {"type": "message", "role": role, "content": text, **more}


def _text(text: str) -> Item:
    return {"type": "input_text", "text": text}


def _call(call: ToolCall, call_id: str) -> Item:
    arguments = call.arguments or "{}"
    if not is_json_object(arguments):
        # A model's broken JSON must not break the chat permanently: some endpoints parse the arguments.
        arguments = encode({"invalid_json": arguments}).decode()
    return {"type": "function_call", "call_id": call_id, "name": function_name(call.name), "arguments": arguments}


def _decoded(encrypted: str) -> list[Item]:
    """Decode the provider's items; drop and log any that this version cannot read."""
    try:
        decoded = msgspec.json.decode(encrypted)
    except NOT_READABLE:
        decoded = None
    items = decoded if isinstance(decoded, list) else [decoded]
    if not all(isinstance(item, dict) and isinstance(item.get("type"), str) for item in items):
        _log.warning("a stored item of the provider could not be read and was left out")
        return []
    return items


def _sendable(item: Item) -> Item:
    keys = ENCRYPTED_KEYS.get(item["type"])
    return item if keys is None else {key: value for key, value in item.items() if key in keys}
