"""Renders a request as the bytes of a Chat Completions body.

Each message is rendered once: the pieces of a chat's last request are cached. The next request is nearly always the
same list with additions, and renders only the new messages. The SDKs run a transform and a JSON encoder over the whole
history on every request, which takes time in proportion to the history.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

import msgspec

from codecompanion.adapters.alternation import user_form
from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest
from codecompanion.adapters.function_names import function_name
from codecompanion.adapters.joined_pieces import JoinedPieces
from codecompanion.adapters.openai_chat.body_check import check_message
from codecompanion.adapters.openai_chat.call_ids import MAX_ID_LENGTH, IdForm, wire_id
from codecompanion.adapters.openai_chat.check import check_request, is_silent, repair_request, speaker, with_place
from codecompanion.adapters.openai_chat.refusals import NOTHING_LEARNED, Learned
from codecompanion.adapters.openai_chat.resent_reasoning import REQUIRED_FIELD, SendReasoning, add_reasoning
from codecompanion.adapters.openai_chat.summary_turn import is_summary, summary_as_turn
from codecompanion.adapters.openai_chat.tool_deltas import is_json_object
from codecompanion.errors import RequestRejected, StoreError
from codecompanion.formats.cutting import cut_line
from codecompanion.model.messages import DocumentPart, ImagePart, Message, TextPart, ToolCall, ToolSpec

_log = logging.getLogger(__name__)

RESERVED = frozenset({"model", "messages", "tools", "n"})
"""Keys of the body that the request itself sets."""
NO_OUTPUT = "(no output)"
"""Text sent in place of an empty tool result, because several endpoints refuse empty content."""
FOREIGN_CALL = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""Vendor → fields that mark calls made by another model; Gemini checks the signatures of its own calls
(https://ai.google.dev/gemini-api/docs/thought-signatures).
"""
_USER = user_form("text")
"""The form of user messages. Mistral's own endpoint needs `no_reply` only between a tool result and the user."""
_COUNTED = ("chat_template_kwargs", "reasoning_effort")
"""Parameters that change the prompt and therefore its token count (llama.cpp, vLLM)."""
_CHATS_KEPT = 4
_QUOTED_CHARS = 40


class RenderOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Differences between endpoints: the known keys of `AdapterSettings.options`.

    send_reasoning: send readable reasoning back, always or in turns that called tools. reasoning_field: the field for
    reasoning; "" means the field that contained it, `content.thinking` a part of the content (Mistral). system_role:
    `developer` for endpoints that require it. one_system_message: send a summary in the system role as a turn (R-146).
    alternate_roles: user and assistant alternate (`adapters/alternation.py`). short_call_ids: nine letters and digits
    (Mistral refuses other ids). image_input, document_input: if False, send a note instead of images or PDFs.
    """

    send_reasoning: SendReasoning = False
    reasoning_field: str = ""
    system_role: Literal["system", "developer"] = "system"
    one_system_message: bool = False
    alternate_roles: bool = False
    short_call_ids: bool = False
    image_input: bool = True
    document_input: bool = False


class _Style(NamedTuple):
    """The settings that affect how a message is rendered."""

    learned: Learned
    send_encrypted: bool


_Pieces = dict[tuple[int, bool], bytes]
"""Rendered pieces by (id of the message object, whether it directly follows a tool result)."""


class _Rendered(msgspec.Struct):
    """The messages of a request as given and as sent, and the piece for each.

    `is_mended`: some messages were repaired before sending, so the next request cannot reuse the pieces.
    """

    style: _Style
    given: tuple[Message, ...]
    sent: list[Message]
    pieces: list[bytes]
    joined: JoinedPieces
    is_mended: bool = False


class ChatRenderer:
    """Renders requests for one adapter; caches the pieces of the last request of a few chats."""

    def __init__(
        self, settings: AdapterSettings, options: RenderOptions, read_blob: BlobReader, origin: str = ""
    ) -> None:
        self._settings = settings
        self._options = options
        self._read_blob = read_blob
        self._origin = origin
        self._call_ids: IdForm = (
            "letters" if options.short_call_ids else "short" if settings.kind == "openai" else "any"
        )
        self._kept: OrderedDict[str, _Rendered] = OrderedDict()

    def render(self, request: ChatRequest, learned: Learned = NOTHING_LEARNED) -> tuple[bytes, ...]:
        """Return the request body in chunks, adapted to the rules learned for the model."""
        return self._body(request, learned, self._parameters(request, learned))

    def render_count(self, request: ChatRequest, learned: Learned = NOTHING_LEARNED) -> tuple[bytes, ...]:
        """Return the body that counts the tokens of the request's prompt: only the input of the chat template."""
        return self._body(request, learned, {k: v for k, v in self._settings.parameters.items() if k in _COUNTED})

    def _body(self, request: ChatRequest, learned: Learned, fields: Mapping[str, Any]) -> tuple[bytes, ...]:
        head = encode({"model": request.model, **fields})[:-1] + b',"messages":['
        tail = b"]" + self._tools(request, learned) + b"}"
        return self._rendered(request, _Style(learned, request.send_encrypted)).joined.between(head, tail)

    def limit_field(self, request: ChatRequest, learned: Learned) -> str:
        """Return the field for the request's reply limit, or "" if no limit is sent."""
        if not (request.max_output_tokens or self._settings.max_output_tokens):
            return ""
        return self._settings.max_tokens_field if learned.limit_field is None else learned.limit_field

    def _parameters(self, request: ChatRequest, learned: Learned) -> dict[str, Any]:
        settings = self._settings
        parameters: dict[str, Any] = {"stream": True, **settings.parameters}
        if settings.include_usage and parameters["stream"] is True:
            parameters.setdefault("stream_options", {"include_usage": True})
        if learned.tells_progress and parameters["stream"] is True:
            parameters.setdefault("return_progress", True)
        if learned.tells_progress is False:
            parameters.pop("return_progress", None)
        if not learned.stream_options:
            parameters.pop("stream_options", None)
        if field := self.limit_field(request, learned):
            parameters[field] = request.max_output_tokens or settings.max_output_tokens
        return parameters

    def _tools(self, request: ChatRequest, learned: Learned) -> bytes:
        if not request.tools:
            return b""
        fields: dict[str, Any] = {"tools": [_render_tool(tool) for tool in request.tools]}
        if self._settings.parallel_tool_calls is not None and learned.parallel_tool_calls:
            fields["parallel_tool_calls"] = self._settings.parallel_tool_calls
        return b"," + encode(fields)[1:-1]

    def _rendered(self, request: ChatRequest, style: _Style) -> _Rendered:
        """Render the messages of a request as pieces, and cache them for the chat's next request."""
        if request.purpose != "chat" or not request.chat_id:
            return self._render_all(request.messages, style)
        kept = self._kept.pop(request.chat_id, None)
        if kept is not None and kept.style != style:
            kept = None
        if kept is None or not self._extend(kept, request.messages):
            kept = self._render_all(request.messages, style, kept)
        if not kept.is_mended:
            self._kept[request.chat_id] = kept
        while len(self._kept) > _CHATS_KEPT:
            self._kept.popitem(last=False)
        return kept

    def _extend(self, kept: _Rendered, given: Sequence[Message]) -> bool:
        """Append the new messages to cached pieces; return False if they must be rendered again."""
        known = len(kept.given)
        # Comparison checks identity before equality: 0.1 ms for 10,000 identical objects.
        if not known or tuple(given[:known]) != kept.given:
            return False
        if self._options.one_system_message and is_summary(kept.given[-1]):
            return False  # whether an answer to it is added depends on the next message
        new = self._as_sent(given[known:])
        if check_request(new):
            return False
        sent = kept.sent
        spoken = next((k for k in range(len(sent) - 1, 0, -1) if not is_silent(sent[k])), 0)
        placed = list(with_place([*sent[spoken:], *new]))[len(sent) - spoken :]
        self._append(kept, placed, {})
        kept.given = tuple(given)
        return True

    def _render_all(self, given: Sequence[Message], style: _Style, kept: _Rendered | None = None) -> _Rendered:
        """Return all pieces of a request; those in `kept` may be reused."""
        sent = self._as_sent(given)
        mended = _sendable(sent)
        reusable: _Pieces = {}
        if kept is not None and mended is sent:
            # The kept messages are alive, so their ids cannot have been reused.
            reusable = {
                (id(message), answers): piece
                for (message, answers), piece in zip(with_place(kept.sent), kept.pieces, strict=True)
            }
        joined = JoinedPieces(_USER if self._alternates(style) else None)
        rendered = _Rendered(style, tuple(given), [], [], joined, is_mended=mended is not sent)
        self._append(rendered, with_place(mended), reusable)
        return rendered

    def _as_sent(self, messages: Sequence[Message]) -> list[Message]:
        return list(summary_as_turn(messages) if self._options.one_system_message else messages)

    def _append(self, rendered: _Rendered, placed: Iterable[tuple[Message, bool]], reusable: _Pieces) -> None:
        """Append messages, each paired with whether it directly follows a tool result."""
        for message, answers in placed:
            piece = reusable.get((id(message), answers)) or self._render_message(message, answers, rendered.style)
            rendered.sent.append(message)
            rendered.pieces.append(piece)
            rendered.joined.add(speaker(message), piece)

    def _render_message(self, message: Message, answers_tools: bool, style: _Style) -> bytes:
        if is_silent(message):
            return b""
        fields = self._fields(message, answers_tools, style)
        own = (self._options.reasoning_field,) if self._options.reasoning_field else ()
        for problem in check_message(fields, MAX_ID_LENGTH if self._id_form(style) == "short" else 0, own):
            if problem.startswith("has the call id"):
                _log.warning("message %s as rendered %s", message.id, problem)  # accepted by the server that wrote it
                continue
            # A bug in this plugin: the endpoint would reject this request and every later one.
            quoted = cut_line(message.text, _QUOTED_CHARS) or message.id
            raise RequestRejected(f"{self._settings.name}: not sent; the {message.role} message “{quoted}” {problem}.")
        if style.learned.reply_to_tools and answers_tools and message.role == "user" and not self._alternates(style):
            return _USER.no_reply + b"," + encode(fields)
        return encode(fields)

    def _fields(self, message: Message, answers_tools: bool, style: _Style) -> dict[str, Any]:
        match message.role:
            case "assistant":
                return self._assistant(message, answers_tools, style)
            case "tool":
                call_id = wire_id(message.tool_call_id or "", self._id_form(style))
                return {"role": "tool", "tool_call_id": call_id, "content": message.text or NO_OUTPUT}
            case "user" if not isinstance(message.content, str):
                return {"role": "user", "content": self._user_parts(message, style.learned)}
            case role:
                name = self._options.system_role if role == "system" else role
                return {"role": name, "content": message.text}

    def _assistant(self, message: Message, answers_tools: bool, style: _Style) -> dict[str, Any]:
        learned, encrypted_origin = style.learned, self._origin if style.send_encrypted else ""
        fields: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        if message.tool_calls:
            form = self._id_form(style)
            calls = [self._render_call(call, form, encrypted_origin) for call in message.tool_calls]
            if learned.sign_calls and not any("extra_content" in call for call in calls):
                # Only the first of parallel calls is signed.
                calls[0]["extra_content"] = FOREIGN_CALL
            fields["tool_calls"] = calls
        if learned.reasoning != "refused":
            required = learned.reasoning == "required"
            wanted = self._options.send_reasoning
            in_tool_turn = bool(message.tool_calls) or answers_tools
            add_reasoning(
                fields,
                message,
                readable=wanted is True or ((wanted or required) and in_tool_turn),
                field=self._options.reasoning_field or (REQUIRED_FIELD if required else ""),
                encrypted_origin=encrypted_origin if in_tool_turn else "",
                required=required,
            )
        return fields

    def _alternates(self, style: _Style) -> bool:
        return self._options.alternate_roles or style.learned.alternate

    def _id_form(self, style: _Style) -> IdForm:
        return style.learned.call_ids or self._call_ids

    def _render_call(self, call: ToolCall, form: IdForm, encrypted_origin: str) -> dict[str, Any]:
        arguments = call.arguments or "{}"
        if not is_json_object(arguments):
            # A model's broken JSON must not break the chat permanently: several endpoints parse the arguments.
            arguments = encode({"invalid_json": arguments}).decode()
        function = {"name": function_name(call.name), "arguments": arguments}
        rendered: dict[str, Any] = {"id": wire_id(call.id, form), "type": "function", "function": function}
        if call.encrypted and encrypted_origin and call.origin == encrypted_origin:
            rendered["extra_content"] = msgspec.Raw(call.encrypted.encode())
        return rendered

    def _user_parts(self, message: Message, learned: Learned) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for part in message.content:
            if isinstance(part, TextPart) and part.text:
                parts.append({"type": "text", "text": part.text})
            elif isinstance(part, ImagePart):
                parts.append(self._image(part, learned))
            elif isinstance(part, DocumentPart):
                parts.append(self._document(part))
        return parts

    def _image(self, part: ImagePart, learned: Learned) -> dict[str, Any]:
        name = part.path or part.url.partition(",")[0][:80] or part.sha256[:12]
        if not (self._options.image_input and learned.images):
            return {"type": "text", "text": f"[The image {name} was not sent: this model does not accept images.]"}
        url = part.url or self._data_url(part.mime, part.sha256, name)
        if not url:
            return {"type": "text", "text": f"[The image {name} cannot be read.]"}
        return {"type": "image_url", "image_url": {"url": url, **({"detail": part.detail} if part.detail else {})}}

    def _document(self, part: DocumentPart) -> dict[str, Any]:
        name = part.path or part.sha256[:12]
        if not self._options.document_input:
            return {"type": "text", "text": f"[The document {name} was not sent: this endpoint does not accept PDFs.]"}
        url = self._data_url(part.mime, part.sha256, name)
        if not url:
            return {"type": "text", "text": f"[The document {name} cannot be read.]"}
        return {"type": "file", "file": {"filename": PurePath(name).name, "file_data": url}}

    def _data_url(self, mime: str, sha256: str, name: str) -> str:
        try:
            return f"data:{mime};base64,{b64encode(self._read_blob(sha256)).decode()}"
        except (LookupError, OSError, StoreError) as error:
            _log.warning("%s could not be read: %s", name, error)
            return ""


def encode(value: Any) -> bytes:
    """Return the value as JSON; lone surrogates, which JSON endpoints refuse, become the replacement character."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(value))


def _sendable(messages: list[Message]) -> list[Message]:
    problems = check_request(messages)
    if not problems:
        return messages
    for problem in problems:
        _log.warning("request repaired before sending: %s", problem)
    return repair_request(messages)


def _render_tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": function_name(tool.name), "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


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
