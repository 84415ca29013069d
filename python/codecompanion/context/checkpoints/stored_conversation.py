"""Converts the conversation of a snapshot to plain objects within the limits of R-463, and back (R-473, R-477).

Objects are written in the transcript format, with the message id in `meta`. `conversationHistory` from other writers is
also read: strings, and lists of the blocks `text`, `tool_use`, `tool_result` and `image`. Signatures and encrypted
reasoning are not stored, since a restored chat may use any provider.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codecompanion.context.editing.repair_pairs import repair_pairs
from codecompanion.errors import InputError
from codecompanion.model.cycles import assign_cycles
from codecompanion.model.messages import (
    CallMark,
    Content,
    DocumentPart,
    ImagePart,
    Message,
    Part,
    TextPart,
    with_changes,
)

MAX_TEXT_CHARS = 50_000
MAX_TOOL_RESULT_CHARS = 10_000
CUT = "\n[... truncated in the snapshot: {left} more characters ...]"


def cut_text(text: str, limit: int) -> str:
    """Return the text truncated to `limit` characters, including a note about the omitted rest."""
    if len(text) <= limit:
        return text
    note = CUT.format(left=len(text))
    kept = limit - len(note)
    return text[:kept] + CUT.format(left=len(text) - kept)


def write_stored_message(message: Message) -> dict[str, Any]:
    """Return the message as an object; text is truncated (R-463) and an image becomes a line with its type and size."""
    limit = MAX_TOOL_RESULT_CHARS if message.role == "tool" else MAX_TEXT_CHARS
    from codecompanion.model.transcript_format import write_message  # not needed at startup

    content = _limited(message.content, limit)
    value = write_message(message if content is message.content else with_changes(message, content=content))
    meta = value.setdefault("meta", {})
    meta["id"] = message.id
    if message.cut:
        meta["cut"] = True
    if not message.visible:
        meta["visible"] = False
    return value


def _limited(content: Content, limit: int) -> Content:
    if isinstance(content, str):
        return cut_text(content, limit)
    return tuple(_limited_part(part, limit) for part in content if not isinstance(part, CallMark))


def _limited_part(part: Part, limit: int) -> Part:
    match part:
        case TextPart(text=text):
            return TextPart(cut_text(text, limit))
        case ImagePart(mime=mime, size_bytes=size):
            name = f", {part.path}" if part.path else ""
            return TextPart(f"[Image {mime}, {-(-size // 1024)} KB{name}]")
        case DocumentPart(mime=mime, size_bytes=size):
            return TextPart(f"[Document {mime}, {-(-size // 1024)} KB, {part.path or part.sha256[:12]}]")
        case _:
            return part


def read_conversation(stored: Sequence[Any], where: str) -> tuple[Message, ...]:
    """Return the messages of a stored conversation with cycles and complete tool pairs (R-004, R-477).

    Raises:
        InputError: an entry is not a message; the error gives its position.
    """
    messages: list[Message] = []
    taken: set[str] = set()
    from codecompanion.model.transcript_format import read_message  # not needed at startup

    for position, value in enumerate(stored):
        for one in _as_transcript(value):
            given = (one.get("meta") or {}).get("id") if isinstance(one.get("meta"), Mapping) else None
            name = given if isinstance(given, str) and given and given not in taken else _free(taken, position)
            taken.add(name)
            message = read_message(one, name, f"{where}[{position}]")
            meta = one.get("meta") or {}
            messages.append(
                with_changes(message, cut=meta.get("cut") is True, visible=meta.get("visible") is not False)
            )
    if not messages:
        raise InputError(f"{where}: the conversation is empty")
    return repair_pairs(assign_cycles(messages)).messages


def _free(taken: set[str], position: int) -> str:
    name, number = f"restored-{position}", 0
    while name in taken:
        number += 1
        name = f"restored-{position}.{number}"
    return name


def _as_transcript(value: Any) -> Iterator[dict[str, Any]]:
    """Yield a stored entry in the transcript format; an entry with tool results becomes several."""
    blocks = value.get("content") if isinstance(value, dict) else None
    if not isinstance(blocks, list) or not any(_kind(block) in _BLOCKS for block in blocks):
        yield value if isinstance(value, dict) else {"role": None}
        return
    texts, calls = [], []
    for block in blocks:
        match _kind(block):
            case "tool_use":
                arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
                function = {"name": str(block.get("name") or "tool"), "arguments": arguments}
                calls.append({"id": str(block.get("id") or ""), "type": "function", "function": function})
            case "tool_result":
                # Results come before the user's words of the same entry.
                yield {
                    "role": "tool",
                    "tool_call_id": str(block.get("tool_use_id") or ""),
                    "content": _text_of(block.get("content")),
                    "meta": {"is_error": block.get("is_error") is True},
                }
            case "image":
                texts.append("[Image]")
            case "text":
                texts.append(str(block.get("text") or ""))
            case _:
                continue
    text = "\n".join(part for part in texts if part)
    if text or calls:
        rest = {key: inner for key, inner in value.items() if key not in ("content", "tool_calls")}
        yield {**rest, "content": text, **({"tool_calls": calls} if calls else {})}


_BLOCKS = frozenset({"tool_use", "tool_result", "image", "thinking", "redacted_thinking"})


def _kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
