"""Renders one message as content blocks of the Messages API, independently of its surroundings.

A message is rendered once and cached: `conversation.py` fills in the parts that depend on the rest of the request (ids
on the wire, whether thinking is sent, excess images). Ids are therefore cut out of the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from codecompanion.adapters.anthropic_messages.block_check import THINKING_KINDS, BlockFacts, read_block
from codecompanion.adapters.anthropic_messages.media import MAX_PIXELS_OF_MANY, Media, left_out, longest_side
from codecompanion.adapters.function_names import function_name
from codecompanion.adapters.openai_chat.render import NO_OUTPUT, encode
from codecompanion.adapters.openai_chat.tool_deltas import is_json_object
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import (
    CallMark,
    CompactionPart,
    DocumentPart,
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
)

WireRole = Literal["user", "assistant"]
_ID = "\x00id"
_ID_BYTES = encode(_ID)


class Block(msgspec.Struct, frozen=True):
    """A content block as JSON: `head`, or `head` + id + `tail` if it has an id. `call` is our id of the tool call.

    `instead` replaces an image when there are too many. `is_big`: the image is too large for a request with many
    others.
    """

    facts: BlockFacts
    head: bytes
    tail: bytes = b""
    call: str = ""
    name: str = ""
    instead: bytes = b""
    is_big: bool = False


class Piece(msgspec.Struct, frozen=True):
    """A rendered message. `is_result`: it is a tool result. `lost_thinking`: its reasoning cannot be sent back."""

    role: WireRole
    blocks: tuple[Block, ...]
    is_result: bool = False
    lost_thinking: bool = False


class MessageRenderer:
    """Renders messages of one adapter; only encrypted blocks from `origin` may be sent back (R-542)."""

    def __init__(self, origin: str, media: Media) -> None:
        self._origin = origin
        self._media = media

    def render(self, message: Message) -> Piece:
        """Return the message's blocks; there may be none."""
        match message.role:
            case "assistant":
                return self._assistant(message)
            case "tool":
                return Piece("user", (self._result(message),), is_result=True)
            case _:
                return Piece("user", tuple(self._user_blocks(message)))

    def _assistant(self, message: Message) -> Piece:
        blocks: list[Block] = []
        lost = False
        placed: set[int] = set()
        calls = message.tool_calls
        parts = (TextPart(message.content),) if isinstance(message.content, str) else message.content
        for part in parts:
            match part:
                case TextPart(text=text) if text.strip():
                    blocks.append(text_block(text, "assistant"))
                case ReasoningPart() if (encrypted := self._encrypted(part)) is not None:
                    blocks.append(encrypted)
                case ReasoningPart():
                    lost = True
                case CallMark(position=position) if position < len(calls) and position not in placed:
                    blocks.append(_call_block(calls[position]))
                    placed.add(position)
        blocks.extend(_call_block(call) for position, call in enumerate(calls) if position not in placed)
        while blocks and blocks[-1].facts.kind in THINKING_KINDS:
            # A turn must not end with thinking; a reply with nothing else has no content.
            blocks.pop()
            lost = True
        return Piece("assistant", tuple(blocks), lost_thinking=lost)

    def _encrypted(self, part: ReasoningPart) -> Block | None:
        """Return the block to send back unchanged, or None if it is from another origin or incomplete."""
        if part.origin != self._origin or not part.encrypted:
            return None
        try:
            head = part.encrypted.encode()
            block = msgspec.json.decode(head)
        except NOT_READABLE:
            return None
        facts = read_block(block, "assistant", verbatim=True)
        return None if facts.problem else Block(facts, head)

    def _user_blocks(self, message: Message) -> list[Block]:
        if isinstance(message.content, str):
            return [text_block(message.content, "user")] if message.content.strip() else []
        blocks: list[Block] = []
        for part in message.content:
            match part:
                case TextPart(text=text) if text.strip():
                    blocks.append(text_block(text, "user"))
                case ImagePart():
                    big = longest_side(part) > MAX_PIXELS_OF_MANY
                    instead = encode(left_out(part))
                    blocks.append(_block(self._media.image(part), "user", instead=instead, is_big=big))
                case DocumentPart():
                    blocks.append(_block(self._media.document(part), "user"))
        return blocks

    def _result(self, message: Message) -> Block:
        content: Any = message.text if message.text.strip() else NO_OUTPUT
        if message.images:
            texts = [{"type": "text", "text": content}] if message.text.strip() else []
            content = [*texts, *(self._media.image(part) for part in message.images)]
        fields = {"type": "tool_result", "tool_use_id": _ID, "content": content}
        if message.is_error:
            fields["is_error"] = True
        return _with_id(fields, "user", message.tool_call_id or "")


def is_empty(message: Message) -> bool:
    """Return whether the message has nothing to send: no text, only plain reasoning, or media not from the user."""
    content = message.content
    if isinstance(content, str):
        return not content.strip()
    for part in content:
        match part:
            case TextPart(text=text) if text.strip():
                return False
            case CompactionPart():
                return False
            case ImagePart() | DocumentPart() if message.role == "user":
                return False
            case ReasoningPart(encrypted=encrypted) if encrypted:
                return False
    return True


def text_block(text: str, role: WireRole) -> Block:
    """Return a text block."""
    return _block({"type": "text", "text": text}, role)


def tagged(tag: str, text: str) -> str:
    """Enclose the text in tags, escaped so that it cannot close them."""
    return f"<{tag}>\n{text.replace(f'</{tag}', f'< /{tag}')}\n</{tag}>"


def _block(fields: Mapping[str, Any], role: WireRole, *, instead: bytes = b"", is_big: bool = False) -> Block:
    facts = read_block(fields, role)
    return Block(facts, encode(fields), instead=instead if facts.images else b"", is_big=is_big)


def _call_block(call: ToolCall) -> Block:
    arguments: Any = call.arguments or "{}"
    # A model's broken JSON must not break the chat permanently; the model can still read its text.
    given = msgspec.Raw(arguments.encode()) if is_json_object(arguments) else {"invalid_json": arguments}
    name = function_name(call.name)
    return _with_id({"type": "tool_use", "id": _ID, "name": name, "input": given}, "assistant", call.id, name)


def _with_id(fields: Mapping[str, Any], role: WireRole, call: str, name: str = "") -> Block:
    whole = {**fields, "input": {}} if "input" in fields else fields
    key = "id" if "id" in fields else "tool_use_id"
    facts = read_block({**whole, key: "id"}, role)
    # The first occurrence is the id: it precedes any text from a tool or a model.
    head, _, tail = encode(fields).partition(_ID_BYTES)
    return Block(facts, head, tail, call, name)
