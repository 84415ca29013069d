"""Reads values of a foreign JSON file; every error names the file, the line and the expected value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from codecompanion.cli.importing.cut_document import read_cut_document
from codecompanion.errors import InputError
from codecompanion.formats.iso_time import read_time
from codecompanion.formats.json_words import kind, wrong_field
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.transcript_format import decode_line, split_lines


class Found(msgspec.Struct, frozen=True):
    """A JSON value and its location (`file:line`)."""

    value: Any
    where: str


Skipped = list[str] | None
"""A list that collects messages about unreadable parts; if None, the first unreadable part ends the import."""


def skip(skipped: Skipped, error: InputError) -> None:
    """Record that a part is skipped.

    Raises:
        InputError: `skipped` is None, so nothing may be skipped.
    """
    if skipped is None:
        raise error
    skipped.append(str(error))


def read_values(raw: bytes, source: str, expected: str, skipped: Skipped = None) -> list[Found]:
    """Return the JSON values of a file: one document, or one value per line.

    With `skipped`, a line may contain several objects, and an unreadable object (truncated or damaged) is skipped and
    noted; so is the end of a truncated document.

    Raises:
        InputError: the file is in neither form; the message names the first invalid line, or reports an empty file.
    """
    try:
        return [Found(json.loads(raw, parse_constant=_refuse_constant), f"{source}:1")]
    except NOT_READABLE as error:
        cut = None if skipped is None else _read_cut(raw, source, f"{error}", skipped)
        found = [cut] if cut else _read_lines(raw, source, expected, skipped)
    if not found:
        raise InputError(f"{source}:1: it is empty; expected {expected}")
    return found


def _read_cut(raw: bytes, source: str, problem: str, skipped: list[str]) -> Found | None:
    """Return the intact part of a truncated document, or None."""
    cut = read_cut_document(raw)
    if cut is None:
        return None
    skipped.append(f"{source}:{cut.line}: the file ends in the middle of {cut.dropped}: not JSON ({problem})")
    return Found(cut.value, f"{source}:1")


def _read_lines(raw: bytes, source: str, expected: str, skipped: Skipped) -> list[Found]:
    found, wrong = list[Found](), list[str]()
    for line, where in split_lines(raw.split(b"\n"), source):
        try:
            found.append(Found(decode_line(line, where, expected), where))
        except InputError as error:
            objects, is_whole = ([], False) if skipped is None else _objects_in(line, where)
            found += objects
            wrong += [] if is_whole else [str(error)]
    if wrong and (skipped is None or not any(isinstance(one.value, dict) for one in found)):
        raise InputError(wrong[0])
    if skipped is not None:
        skipped += wrong
    return found


def _objects_in(line: bytes, where: str) -> tuple[list[Found], bool]:
    """Return the objects at the start of a line, and whether they are the whole line.

    The line may be damaged because two programs wrote at once, or because a write was interrupted.
    """
    text, found = line.decode("utf-8", "replace").strip(), list[Found]()
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    while text.startswith("{"):
        try:
            value, end = decoder.raw_decode(text)
        except NOT_READABLE:
            break
        found.append(Found(value, where))
        text = text[end:].lstrip()
    return found, not text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def expect_object(value: Any, where: str, what: str) -> dict[str, Any]:
    """Return the value as an object.

    Raises:
        InputError: the value is not an object.
    """
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected {what}, found {kind(value)}")
    return value


def expect_list(value: Any, where: str, what: str) -> list[Any]:
    """Return the value as a list.

    Raises:
        InputError: the value is not a list.
    """
    if not isinstance(value, list):
        raise InputError(f"{where}: expected {what}, found {kind(value)}")
    return value


def expect_text(value: Any, where: str, what: str) -> str:
    """Return the value as a string.

    Raises:
        InputError: the value is not a string.
    """
    if not isinstance(value, str):
        raise InputError(f"{where}: {wrong_field(what, value, 'a string')}")
    return value


def seconds(value: Any) -> float | None:
    """Return a time as seconds since the epoch (from an ISO string, seconds, or milliseconds), or None."""
    if isinstance(value, str):
        return read_time(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e14:
        return None
    return value / 1000 if value > 1e11 else float(value)


def with_meta(message: dict[str, Any], **meta: Any) -> dict[str, Any]:
    """Return the message with these meta fields added; fields that are None or False are left out."""
    known = {**message.get("meta", {}), **{name: value for name, value in meta.items() if value not in (None, False)}}
    return {**message, "meta": known} if known else message


def as_arguments(value: Any) -> str:
    """Return tool call arguments as JSON text, as our format requires."""
    return value if isinstance(value, str) else json.dumps(value if value is not None else {}, ensure_ascii=False)


def make_call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """Return a tool call in our format."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": as_arguments(arguments)}}


def joined(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return content parts as one string if all of them are text, or else unchanged."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def count_tokens(usage: Any, names: dict[str, str]) -> dict[str, int] | None:
    """Return a usage report under our field names, or None if it has none.

    `names` maps our names to the report's names.
    """
    if not isinstance(usage, dict):
        return None
    counted = {ours: usage.get(theirs) for ours, theirs in names.items()}
    return {ours: value for ours, value in counted.items() if isinstance(value, int) and value >= 0} or None


def numbered(values: list[Any], where: str) -> Iterator[Found]:
    """Yield each value of a list with its location."""
    for index, value in enumerate(values):
        yield Found(value, f"{where}[{index}]")
