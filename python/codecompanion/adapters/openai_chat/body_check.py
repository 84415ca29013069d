"""Checks one rendered message against the rules of a Chat Completions endpoint.

Based on the API reference, the SDK's types and recorded 400 errors. Extensions of compatible endpoints (reasoning
fields, additions to calls) are accepted; where these endpoints are stricter (empty content), their rule applies.
`check_message` examines one message, so that a request costs O(new messages).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from codecompanion.adapters.function_names import MAX_NAME_LENGTH
from codecompanion.adapters.openai_chat.call_ids import MAX_ID_LENGTH
from codecompanion.adapters.openai_chat.decode import REASONING_FIELDS
from codecompanion.adapters.openai_chat.tool_deltas import is_json_object
from codecompanion.formats.regex import regex

FUNCTION_NAME = regex(rf"[A-Za-z0-9_-]{{1,{MAX_NAME_LENGTH}}}")
_IMAGE = regex(r"https?://.|data:image/[a-z+.-]+;base64,.")
_PDF = regex(r"data:application/pdf;base64,.")
_OPEN = ("reasoning_details", "extra_content", "reasoning_text", "reasoning_opaque")


def _keys(required: Collection[str], others: Collection[str] = ()) -> tuple[frozenset[str], frozenset[str]]:
    """Return (required keys, allowed keys)."""
    return frozenset(required), frozenset((*required, *others))


_TYPED = _keys(("role", "content"), ("name",))
_KEYS = {
    "system": _TYPED,
    "developer": _TYPED,
    "user": _TYPED,
    "assistant": _keys(("role",), ("content", "name", "tool_calls", "refusal", "prefix", *REASONING_FIELDS, *_OPEN)),
    "tool": _keys(("role", "content", "tool_call_id")),
}
_CALL, _FUNCTION = _keys(("id", "type", "function"), _OPEN), _keys(("name", "arguments"))
_IMAGE_URL, _FILE = _keys(("url",), ("detail",)), _keys((), ("filename", "file_data", "file_id"))
_PARTS = {
    "text": _keys(("type", "text"), ("prompt_cache_breakpoint",)),
    "image_url": _keys(("type", "image_url"), ("prompt_cache_breakpoint",)),
    "file": _keys(("type", "file"), ("prompt_cache_breakpoint",)),
    "thinking": _keys(("type", "thinking"), ("closed",)),
}
_PARTS_OF = {"user": ("text", "image_url", "file"), "assistant": ("text", "thinking")}


def check_message(message: object, max_id_length: int = MAX_ID_LENGTH, own_keys: Collection[str] = ()) -> list[str]:
    """Return the problems in one message, as phrases that complete a sentence.

    `max_id_length`: maximum length of ids, 0 for any length. `own_keys`: keys that the endpoint's entry adds to the
    model's messages.
    """
    role = message.get("role") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(role, str) or role not in _KEYS:
        return [f"has the unknown role {role!r}"]
    required, allowed = _KEYS[role]
    problems = _check_keys(message, required, allowed.union(own_keys) if own_keys else allowed)
    if problems:
        return problems
    if "name" in message and not isinstance(message["name"], str):
        problems.append("has a name that is not text")
    if role == "tool" and not _is_text(message["tool_call_id"]):
        problems.append("has an invalid `tool_call_id`")
    calls = message.get("tool_calls")
    if "tool_calls" in message:
        problems += _check_calls(calls, max_id_length)
    if calls and message.get("content") is None:
        return problems
    if calls and message.get("content") == []:
        return [*problems, "is empty beside its calls"]
    return problems + _check_content(message.get("content"), _PARTS_OF.get(role, ("text",)))


def _check_calls(calls: object, max_id_length: int) -> list[str]:
    if not isinstance(calls, list) or not calls:
        return ["has tool_calls that are empty or not a list"]
    problems: list[str] = []
    ids: set[str] = set()
    for call in calls:
        if not isinstance(call, Mapping):
            return [*problems, "has a call that is not an object"]
        wrong = _check_keys(call, *_CALL)
        function = call.get("function")
        if wrong or call["type"] != "function" or not isinstance(function, Mapping):
            return [*problems, *(wrong or ["has a call that is not a function"])]
        problems += _check_keys(function, *_FUNCTION)
        if not _is_text(call["id"]) or 0 < max_id_length < len(call["id"]) or call["id"] in ids:
            problems.append(f"has the call id {str(call['id'])[:80]!r}, which is empty, too long or repeated")
        ids.add(str(call["id"]))
        name = function.get("name")
        if not isinstance(name, str) or not FUNCTION_NAME.fullmatch(name):
            problems.append(f"calls {str(name)[:80]!r}, which is not a function name")
        if not isinstance(function.get("arguments"), str):
            problems.append("has arguments that are not text")
        elif not is_json_object(function["arguments"]):
            problems.append("has arguments that are not a JSON object")
    return problems


def _check_content(content: object, allowed: tuple[str, ...]) -> list[str]:
    if isinstance(content, str):
        return [] if content else ["is empty"]
    if not isinstance(content, list) or not content:
        return ["is empty" if content == [] else "has content that is neither text nor a list"]
    return [problem for part in content for problem in _check_part(part, allowed)]


def _check_part(part: object, allowed: tuple[str, ...]) -> list[str]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or not isinstance(kind, str) or kind not in allowed:
        return [f"has a part of the unknown type {kind!r}"]
    problems = _check_keys(part, *_PARTS[kind])
    if problems or kind == "thinking":
        return problems
    inner = part[kind]
    if kind == "text":
        return [] if _is_text(inner) else ["has an empty text part"]
    if not isinstance(inner, Mapping):
        return [f"has a {kind} part that is not an object"]
    if kind == "image_url":
        wrong = _check_keys(inner, *_IMAGE_URL)
        fits = _matches(_IMAGE, inner.get("url")) and inner.get("detail") in (None, "auto", "low", "high", "original")
        return wrong or ([] if fits else ["has an image that is neither a URL nor base64"])
    wrong = _check_keys(inner, *_FILE)
    fits = _is_text(inner.get("file_id")) or (
        _is_text(inner.get("filename")) and _matches(_PDF, inner.get("file_data"))
    )
    return wrong or ([] if fits else ["has a file that has no name or is not a PDF"])


def _check_keys(value: Mapping[str, Any], required: frozenset[str], allowed: frozenset[str]) -> list[str]:
    keys = value.keys()
    if required <= keys <= allowed:
        return []
    missing = [f"lacks {key!r}" for key in sorted(required - keys)]
    return missing + [f"has the unknown key {key!r}" for key in sorted(keys - allowed)]


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.match(value) is not None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
