"""A request as the bytes of a Chat Completions body.

Each message is rendered once: the pieces of the last request of a chat are kept, and the next request, which nearly
always is the same list with something appended, only renders what is new. The SDK's own way (a transform and a JSON
encoder over the whole history) costs time in proportion to the history on every request.
"""

from __future__ import annotations

import hashlib
import logging
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest
from codecompanion.adapters.openai_chat.check import check_request, repair_request
from codecompanion.adapters.openai_chat.decode import MISTRAL_THINKING
from codecompanion.adapters.openai_chat.tool_deltas import is_json_object
from codecompanion.errors import StoreError
from codecompanion.messages import ImagePart, Message, ReasoningPart, TextPart, ToolCall, ToolSpec

_log = logging.getLogger(__name__)

NO_OUTPUT = "(no output)"
"""Stands in for an empty tool result: several endpoints refuse empty content."""
_CHATS_KEPT = 4
_SHORT_ID_LENGTH = 9


class RenderOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What differs between endpoints: the known keys of `AdapterSettings.options`.

    send_reasoning: give reasoning back in the field it came in. system_role: `developer` for endpoints that want it.
    short_call_ids: nine letters and digits (Mistral refuses other ids). image_input: False = send a note instead.
    """

    send_reasoning: bool = False
    system_role: Literal["system", "developer"] = "system"
    short_call_ids: bool = False
    image_input: bool = True


class ChatRenderer:
    """Renders requests of one adapter; keeps the pieces of the last request of a few chats."""

    def __init__(self, settings: AdapterSettings, options: RenderOptions, read_blob: BlobReader) -> None:
        self._settings = settings
        self._options = options
        self._read_blob = read_blob
        self._kept: OrderedDict[str, tuple[list[Message], list[bytes]]] = OrderedDict()

    def render(self, request: ChatRequest) -> bytes:
        """Return the request body."""
        head = encode({"model": request.model, **self._parameters(request)})[:-1] + b',"messages":['
        tail = b"]" + self._tools(request) + b"}"
        pieces = self._pieces(request)
        if len(pieces) < 2:
            return head + b"".join(pieces) + tail
        # One join, one copy: a body can have 10 MB.
        return b",".join((head + pieces[0], *pieces[1:-1], pieces[-1] + tail))

    def _parameters(self, request: ChatRequest) -> dict[str, Any]:
        settings = self._settings
        parameters: dict[str, Any] = {"stream": True, **settings.parameters}
        if settings.include_usage and parameters["stream"] is True:
            parameters.setdefault("stream_options", {"include_usage": True})
        limit = request.max_output_tokens or settings.max_output_tokens
        if limit and settings.max_tokens_field:
            parameters[settings.max_tokens_field] = limit
        return parameters

    def _tools(self, request: ChatRequest) -> bytes:
        if not request.tools:
            return b""
        fields: dict[str, Any] = {"tools": [_render_tool(tool) for tool in request.tools]}
        if self._settings.parallel_tool_calls is not None:
            fields["parallel_tool_calls"] = self._settings.parallel_tool_calls
        return b"," + encode(fields)[1:-1]

    def _pieces(self, request: ChatRequest) -> list[bytes]:
        messages = list(request.messages)
        if request.purpose != "chat" or not request.chat_id:
            return [self._render_message(message) for message in _sendable(messages)]
        old_messages, old_pieces = self._kept.pop(request.chat_id, ([], []))
        known = len(old_messages)
        # List comparison asks for identity before equality: 0.1 ms for 10,000 messages that are the same objects.
        if known and messages[:known] == old_messages and not check_request(messages[known:]):
            pieces = old_pieces + [self._render_message(message) for message in messages[known:]]
        else:
            if check_request(messages):
                return [self._render_message(message) for message in _sendable(messages)]
            # The kept messages are alive, so their ids cannot have been given to others.
            kept = {id(message): piece for message, piece in zip(old_messages, old_pieces, strict=True)}
            pieces = [kept.get(id(message)) or self._render_message(message) for message in messages]
        self._kept[request.chat_id] = (messages, pieces)
        while len(self._kept) > _CHATS_KEPT:
            self._kept.popitem(last=False)
        return pieces

    def _render_message(self, message: Message) -> bytes:
        match message.role:
            case "assistant":
                return encode(self._assistant(message))
            case "tool":
                call_id = self._call_id(message.tool_call_id or "")
                return encode({"role": "tool", "tool_call_id": call_id, "content": message.text or NO_OUTPUT})
            case "user" if not isinstance(message.content, str):
                return encode({"role": "user", "content": self._user_parts(message)})
            case role:
                name = self._options.system_role if role == "system" else role
                return encode({"role": name, "content": message.text})

    def _assistant(self, message: Message) -> dict[str, Any]:
        fields: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        if message.tool_calls:
            fields["tool_calls"] = [self._render_call(call) for call in message.tool_calls]
        if self._options.send_reasoning and not isinstance(message.content, str):
            for part in message.content:
                if isinstance(part, ReasoningPart) and part.text:
                    _add_reasoning(fields, part)
        return fields

    def _render_call(self, call: ToolCall) -> dict[str, Any]:
        arguments = call.arguments or "{}"
        if not is_json_object(arguments):
            # A model that wrote broken JSON must not break the chat for ever: several endpoints parse what they get.
            arguments = encode({"invalid_json": arguments}).decode()
        function = {"name": call.name, "arguments": arguments}
        return {"id": self._call_id(call.id), "type": "function", "function": function}

    def _call_id(self, call_id: str) -> str:
        if not self._options.short_call_ids or (len(call_id) == _SHORT_ID_LENGTH and call_id.isalnum()):
            return call_id
        return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:_SHORT_ID_LENGTH]

    def _user_parts(self, message: Message) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for part in message.content:
            if isinstance(part, TextPart) and part.text:
                parts.append({"type": "text", "text": part.text})
            elif isinstance(part, ImagePart):
                parts.append(self._image(part))
        return parts

    def _image(self, part: ImagePart) -> dict[str, Any]:
        name = part.path or part.url.partition(",")[0][:80] or part.sha256[:12]
        if not self._options.image_input:
            return {"type": "text", "text": f"[The image {name} was not sent: this model takes no images.]"}
        url = part.url
        if not url:
            try:
                url = f"data:{part.mime};base64,{b64encode(self._read_blob(part.sha256)).decode()}"
            except (LookupError, OSError, StoreError) as error:
                _log.warning("image %s could not be read: %s", name, error)
                return {"type": "text", "text": f"[The image {name} could not be read.]"}
        return {"type": "image_url", "image_url": {"url": url, **({"detail": part.detail} if part.detail else {})}}


def encode(value: Any) -> bytes:
    """Return the value as JSON; lone surrogates, which JSON endpoints refuse, become the replacement character."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(value))


def reserved_parameters(settings: AdapterSettings) -> list[str]:
    """Return the keys of `parameters` that the request itself sets."""
    return sorted({"model", "messages", "tools", "n"} & set(settings.parameters))


def _sendable(messages: list[Message]) -> Sequence[Message]:
    problems = check_request(messages)
    if not problems:
        return messages
    for problem in problems:
        _log.warning("request repaired before sending: %s", problem)
    return repair_request(messages)


def _render_tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _add_reasoning(fields: dict[str, Any], part: ReasoningPart) -> None:
    if part.field != MISTRAL_THINKING:
        fields[part.field] = fields.get(part.field, "") + part.text
        return
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
    text = fields["content"]
    others = text if isinstance(text, list) else [{"type": "text", "text": text}] if text else []
    fields["content"] = [thinking, *others]


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case Mapping():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_surrogates(item) for item in value]
        case _:
            return value
