"""Reads and writes the command line's transcript format: JSON Lines of OpenAI Chat messages with an optional `meta`.

Reading keeps the original object beside each message, so that an unchanged message is written back exactly as it was.
Messages get the ids `m0`, `m1`, …; call ids may repeat in real data and are never changed.
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, cast

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats import typed
from codecompanion.formats.iso_time import read_time
from codecompanion.formats.json_words import kind, wrong_field
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.cycles import assign_cycles
from codecompanion.model.messages import (
    CompactionPart,
    Content,
    DocumentPart,
    GatheredPiece,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    Role,
    Source,
    TextPart,
    ToolCall,
    Usage,
)

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_WORDS = {str: "a string", bool: "true or false", int: "a whole number", dict: "an object", list: "a list"}
A_MESSAGE = "one message object per line"
_META_FLAGS = ("pinned", "is_error", "edited", "compacted")


class Transcript(msgspec.Struct, frozen=True):
    """A parsed transcript: the messages, and the object that each was read from, by message id."""

    messages: tuple[Message, ...]
    originals: dict[str, dict[str, Any]]


def split_lines(raw: Iterable[bytes], source: str) -> Iterator[tuple[bytes, str]]:
    """Yield every non-blank line with its location, `source:number`; only a line feed ends a line.

    JSON strings may contain U+2028, U+0085 and similar, so `str.splitlines` would split messages.
    """
    for number, line in enumerate(raw, 1):
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if line.strip():
            yield line, f"{source}:{number}"


def decode_line(line: bytes | str, where: str, expected: str) -> Any:
    """Return the JSON value of one line.

    Raises:
        InputError: the line is not UTF-8 or not JSON; the message names the location and the expected format.
    """
    try:
        text = line if isinstance(line, str) else line.decode("utf-8")
        return json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 text (byte {error.start + 1}); expected {expected}") from error
    except RecursionError as error:
        raise InputError(f"{where}: nested too deeply; expected {expected}") from error
    except MemoryError as error:
        raise InputError(f"{where}: too large for this computer's memory; expected {expected}") from error
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error}); expected {expected}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def read_bytes(raw: Iterable[bytes], source: str) -> Transcript:
    """Return the transcript in the lines of a file, ignoring blank lines.

    Raises:
        InputError: a line is not JSON or not a message; the message names source, line and the expected format.
    """
    return _collect([(decode_line(line, where, A_MESSAGE), where) for line, where in split_lines(raw, source)])


def read_objects(objects: Sequence[Any], source: str) -> Transcript:
    """Return the transcript in a list of message objects.

    Raises:
        InputError: as for `read_bytes`, but the message names the position instead of the line.
    """
    return _collect([(value, f"{source}[{index}]") for index, value in enumerate(objects)])


def _collect(objects: Iterable[tuple[Any, str]]) -> Transcript:
    messages, originals = [], {}
    for index, (value, where) in enumerate(objects):
        message = read_message(value, f"m{index}", where)
        messages.append(message)
        originals[message.id] = value
    return Transcript(assign_cycles(messages), originals)


def read_message(value: Any, message_id: str, where: str) -> Message:
    """Return one message.

    Raises:
        InputError: a field is missing or of the wrong type.
    """
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected a message object, found {kind(value)}")
    given = value.get("role")
    role = _ROLES.get(given) if isinstance(given, str) else None
    if role is None:
        raise InputError(f"{where}: {wrong_field('role', given, 'one of ' + ', '.join(_ROLES))}")
    meta = value.get("meta") or {}
    if not isinstance(meta, dict):
        raise InputError(f"{where}: {wrong_field('meta', meta, 'an object')}")
    call_id = value.get("tool_call_id")
    if role == "tool" and not isinstance(call_id, str):
        raise InputError(f"{where}: {wrong_field('tool_call_id', call_id, 'the id of the call it answers, a string')}")
    return Message(
        id=message_id,
        role=role,
        content=_read_content(value, where),
        tool_calls=tuple(_read_calls(value.get("tool_calls"), where)),
        tool_call_id=call_id if role == "tool" else None,
        **_read_meta(meta, where),
    )


def _read_meta(meta: Mapping[str, Any], where: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in ("tag", "path"):
        if meta.get(name) is not None:
            fields[name] = _expect(meta[name], str, where, f"meta.{name}")
    for name in _META_FLAGS:
        if meta.get(name) is not None:
            fields[name] = _expect(meta[name], bool, where, f"meta.{name}")
    if meta.get("cycle") is not None:
        fields["cycle"] = _expect(meta["cycle"], int, where, "meta.cycle")
        if fields["cycle"] < 1:
            raise InputError(f"{where}: {wrong_field('meta.cycle', fields['cycle'], '1 or more')}")
    if meta.get("gathered") is not None:
        pieces = _expect(meta["gathered"], list, where, "meta.gathered")
        try:
            fields["gathered"] = typed.convert(pieces, tuple[GatheredPiece, ...])
        except NOT_READABLE as error:
            raise InputError(f'{where}: "meta.gathered": expected {{path, start, end, …}} ({error})') from error
    if meta.get("sources") is not None:
        sources = _expect(meta["sources"], list, where, "meta.sources")
        try:
            fields["sources"] = typed.convert(sources, tuple[Source, ...])
        except msgspec.ValidationError as error:
            raise InputError(f'{where}: "meta.sources": expected {{kind, name}} ({error})') from error
    if isinstance(meta.get("ts"), int | float):
        fields["ts"] = _seconds(meta["ts"], f'{where}: "meta.ts"')
    elif isinstance(meta.get("ts"), str):
        fields["ts"] = read_time(meta["ts"]) or 0.0
    if meta.get("usage") is not None:
        usage = _expect(meta["usage"], dict, where, "meta.usage")
        try:
            fields["usage"] = typed.convert({k: v for k, v in usage.items() if v is not None}, Usage)
        except NOT_READABLE as error:
            raise InputError(f'{where}: "meta.usage": expected whole numbers of tokens ({error})') from error
    return fields


def _seconds(value: float, where: str) -> float:
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds):
        raise InputError(f"{where} is out of range; expected seconds since the epoch")
    return seconds


def _read_content(value: Mapping[str, Any], where: str) -> Content:
    content = value.get("content")
    reasoning = value.get("reasoning_content")
    parts: list[Part] = []
    if isinstance(reasoning, str) and reasoning:
        parts.append(ReasoningPart(reasoning))
    if content is None:
        content = ""
    if isinstance(content, str):
        return (*parts, TextPart(content)) if parts else content
    if not isinstance(content, list):
        raise InputError(f"{where}: {wrong_field('content', content, 'a string or a list of parts')}")
    for index, part in enumerate(content):
        parts.append(_read_part(part, where, f"content[{index}]"))
    return tuple(parts)


_DETAILS = ("auto", "low", "high", "original")


def _read_part(part: Any, where: str, name: str) -> Part:
    if not isinstance(part, dict):
        raise InputError(f"{where}: {wrong_field(name, part, 'an object with a type')}")
    sort = part.get("type")
    if sort in ("text", "input_text", "output_text", "refusal"):
        return TextPart(_expect(part.get("text", part.get("refusal", "")), str, where, f"{name}.text"))
    if sort in ("image_url", "input_image"):
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        detail = image.get("detail", "") if isinstance(image, dict) else ""
        detail = detail if detail in _DETAILS else ""  # the provider would reject any other value
        url = _expect(url, str, where, f"{name}.image_url.url")
        mime = url[5:].partition(";")[0] if url.startswith("data:") else "image/png"
        return ImagePart(mime=mime, url=url, detail=detail, size_bytes=len(url) * 3 // 4 if mime else 0)
    raise InputError(f"{where}: {wrong_field(f'{name}.type', sort, 'text or image_url')}")


def _read_calls(calls: Any, where: str) -> Iterator[ToolCall]:
    if calls is None:
        return
    if not isinstance(calls, list):
        raise InputError(f"{where}: {wrong_field('tool_calls', calls, 'a list')}")
    for index, call in enumerate(calls):
        at = f"tool_calls[{index}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            form = '{"id", "type": "function", "function": {"name", "arguments"}}'
            raise InputError(f"{where}: {wrong_field(at, call, form)}")
        arguments = function.get("arguments", "{}")
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        yield ToolCall(
            _expect(call.get("id"), str, where, f"{at}.id"),
            _expect(function.get("name"), str, where, f"{at}.function.name"),
            arguments,
        )


def write_message(message: Message, original: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the message as an object of the format, keeping unknown keys of `original`."""
    value: dict[str, Any] = dict(original or {})
    value["role"] = message.role
    value["content"] = _write_content(message.content)
    for part in message.content if not isinstance(message.content, str) else ():
        if isinstance(part, ReasoningPart):
            value[part.field] = part.text
    if message.tool_calls:
        value["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    else:
        value.pop("tool_calls", None)
    if message.tool_call_id is not None:
        value["tool_call_id"] = message.tool_call_id
    meta = dict(value.get("meta") or {})
    meta.update(_write_meta(message, meta))
    if meta:
        value["meta"] = meta
    return value


def _write_meta(message: Message, given: Mapping[str, Any]) -> dict[str, Any]:
    meta: dict[str, Any] = {name: True for name in _META_FLAGS if getattr(message, name)}
    for name in ("tag", "path", "cycle"):
        if getattr(message, name) is not None:
            meta[name] = getattr(message, name)
    if message.ts and not isinstance(given.get("ts"), str):
        meta["ts"] = message.ts
    if message.gathered:
        meta["gathered"] = [msgspec.to_builtins(piece) for piece in message.gathered]
    if message.sources:
        meta["sources"] = [msgspec.to_builtins(source) for source in message.sources]
    if message.usage is not None:
        meta["usage"] = {
            name: getattr(message.usage, name)
            for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        }
    return meta


def _write_content(content: Content) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = []
    for part in content:
        if isinstance(part, TextPart):
            parts.append({"type": "text", "text": part.text})
        elif isinstance(part, ImagePart):
            url = part.url or f"sha256:{part.sha256}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        elif isinstance(part, DocumentPart):
            parts.append({"type": "text", "text": f"[The document {part.path or part.sha256}]"})
        elif isinstance(part, CompactionPart):
            parts.append({"type": "text", "text": part.text or "[Compacted by the provider]"})
    if len(parts) == 1 and parts[0]["type"] == "text":
        return cast(str, parts[0]["text"])
    return parts


def _expect(value: Any, wanted: type, where: str, name: str) -> Any:
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise InputError(f"{where}: {wrong_field(name, value, _WORDS[wanted])}")
    return value
