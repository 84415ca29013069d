"""Checks one input item against a Responses endpoint's rules, independently of its surroundings.

Based on the API reference, the SDK's types, recorded requests and error bodies reported by users: unknown keys, empty
content, ids that are too long or of another type, names, images and files. Rules between items (pairs, order,
compaction) are in `check.py`. An empty result means that this item alone does not cause a 400 error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from codecompanion.adapters.openai_chat.tool_deltas import is_json_object
from codecompanion.adapters.openai_responses.call_ids import MAX_ID_LENGTH
from codecompanion.formats.cutting import cut
from codecompanion.formats.regex import regex

Item = Mapping[str, Any]
ROLES = ("user", "assistant", "system", "developer")
PHASES = ("commentary", "final_answer", None)
STATES = ("in_progress", "completed", "incomplete")
HOSTED_CALLS = frozenset(
    [
        *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "computer_call"),
        *("local_shell_call", "shell_call", "apply_patch_call", "mcp_call", "mcp_list_tools", "mcp_approval_request"),
        *("custom_tool_call", "tool_search_call", "program"),
    ]
)
"""Item types of the provider's built-in tools, which are never requested here but are not an error."""
_OTHER_ITEMS = frozenset(
    [
        *(
            "item_reference",
            "additional_tools",
            "tool_search_output",
            "computer_call_output",
            "custom_tool_call_output",
        ),
        *("local_shell_call_output", "shell_call_output", "apply_patch_call_output", "mcp_approval_response"),
        *("program_output", "compaction_trigger"),
    ]
)
_CALL_ID = regex(rf"[A-Za-z0-9_-]{{1,{MAX_ID_LENGTH}}}")
_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
_IMAGE = regex(r"https?://.|data:image/(?:png|jpe?g|gif|webp);base64,[A-Za-z0-9+/]")
_FILE = regex(r"data:[a-z]+/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]")
_KEYS = {
    "message": ({"role", "content"}, {"type", "id", "status", "phase"}),
    "reasoning": ({"type", "id", "summary"}, {"content", "encrypted_content", "status"}),
    "function_call": (
        {"type", "call_id", "name", "arguments"},
        {"id", "status", "namespace", "caller", "async"},
    ),
    "function_call_output": (
        {"type", "call_id", "output"},
        {"id", "status", "caller", "name", "namespace"},
    ),
    "compaction": ({"type", "encrypted_content"}, {"id"}),
}
"""Item type → (required, optional) keys of the items that the plugin writes."""
_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "compaction": "cmp"}
"""Item type → prefix of its ids. Compatible endpoints use their own prefixes, so only another type's prefix is an
error.
"""
_PARTS = {
    "input_text": ({"type", "text"}, {"prompt_cache_breakpoint"}),
    "output_text": ({"type", "text"}, {"annotations", "logprobs"}),
    "refusal": ({"type", "refusal"}, set()),
    "input_image": ({"type"}, {"image_url", "file_id", "detail", "prompt_cache_breakpoint"}),
    "input_file": (
        {"type"},
        {"file_data", "file_url", "file_id", "filename", "detail", "prompt_cache_breakpoint"},
    ),
    "summary_text": ({"type", "text"}, set()),
    "reasoning_text": ({"type", "text"}, set()),
}
_INPUT = ("input_text", "input_image", "input_file")


def type_of(item: Item) -> str:
    """Return the type of an item; a message may omit its type."""
    kind = item.get("type", "message")
    return kind if isinstance(kind, str) else ""


def check_item(item: object) -> list[str]:
    """Return the errors in one item, as phrases that complete a sentence."""
    if not isinstance(item, Mapping):
        return ["is not an object"]
    kind = type_of(item)
    if kind in HOSTED_CALLS or kind in _OTHER_ITEMS:
        return []
    if kind not in _KEYS:
        return [f"has the unknown type {kind!r}"]
    problems = [*_check_keys(item, *_KEYS[kind]), *_check_id(item.get("id"), kind)]
    if "status" in item and item["status"] not in STATES and (kind, item["status"]) != ("function_call_output", None):
        problems.append(f"has the unknown status {item['status']!r}")
    return problems or _CHECKS[kind](item)


def _check_message(item: Item) -> list[str]:
    role, content = item["role"], item["content"]
    if role not in ROLES:
        return [f"has the unknown role {role!r}"]
    problems = []
    if item.get("phase") not in PHASES or (item.get("phase") and role != "assistant"):
        problems.append(f"has the invalid phase {item['phase']!r}")
    if isinstance(content, str):
        # Recorded replies that only call tools have empty text, which was accepted.
        return problems if content or role == "assistant" else [*problems, "is empty"]
    allowed = ("output_text", "refusal") if role == "assistant" else _INPUT if role == "user" else ("input_text",)
    return problems + _check_parts(content, allowed)


def _check_reasoning(item: Item) -> list[str]:
    problems = _check_parts(item["summary"], ("summary_text",), may_be_empty=True)
    content, encrypted = item.get("content"), item.get("encrypted_content")
    if content is not None:
        problems += _check_parts(content, ("reasoning_text",), may_be_empty=True)
    if not isinstance(item["id"], str) or not item["id"]:
        problems.append("has no id")
    if encrypted is not None and not _is_text(encrypted):
        problems.append("has an empty encrypted_content")
    if encrypted is None and not content:
        problems.append("has no encrypted_content, and nothing is stored under its id")
    return problems


def _check_call(item: Item) -> list[str]:
    problems = [] if _matches(_CALL_ID, item["call_id"]) else [f"has invalid call_id {cut(repr(item['call_id']), 80)}"]
    if not _matches(_NAME, item["name"]):
        problems.append(f"calls {cut(repr(item['name']), 80)}, which is not a function name")
    if not isinstance(item["arguments"], str):
        problems.append("has arguments that are not text")
    elif not is_json_object(item["arguments"]):
        problems.append("has arguments that are not a JSON object")
    return problems


def _check_output(item: Item) -> list[str]:
    problems = [] if _matches(_CALL_ID, item["call_id"]) else [f"has invalid call_id {cut(repr(item['call_id']), 80)}"]
    if not isinstance(item["output"], str):
        problems += _check_parts(item["output"], _INPUT)
    elif not item["output"]:
        problems.append("is empty")
    return problems


def _check_compaction(item: Item) -> list[str]:
    return [] if _is_text(item["encrypted_content"]) else ["has an empty encrypted_content"]


_CHECKS: dict[str, Callable[[Item], list[str]]] = {
    "message": _check_message,
    "reasoning": _check_reasoning,
    "function_call": _check_call,
    "function_call_output": _check_output,
    "compaction": _check_compaction,
}


def _check_keys(item: Item, required: Iterable[str], allowed: Iterable[str]) -> list[str]:
    missing = [f"lacks {key!r}" for key in sorted(set(required) - set(item))]
    return missing + [f"has the unknown key {key!r}" for key in sorted(set(item) - set(required) - set(allowed))]


def _check_id(own: object, kind: str) -> list[str]:
    if own is None:
        return []
    others = [prefix for name, prefix in _PREFIXES.items() if name != kind] + ["call"]
    fits = _matches(_CALL_ID, own) and str(own).partition("_")[0] not in others
    return [] if fits else [f"has the invalid id {cut(repr(own), 80)}"]


def _check_parts(parts: object, allowed: tuple[str, ...], *, may_be_empty: bool = False) -> list[str]:
    if not isinstance(parts, list) or (not parts and not may_be_empty):
        return ["is empty" if parts == [] else "has content that is neither text nor a list"]
    return [problem for part in parts for problem in _check_part(part, allowed)]


def _check_part(part: object, allowed: tuple[str, ...]) -> list[str]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or kind not in allowed or not isinstance(kind, str):
        return [f"has a part of the unknown type {kind!r}"]
    problems = _check_keys(part, *_PARTS[kind])
    if problems:
        return problems
    match kind:
        case "input_image":
            return _check_image(part)
        case "input_file":
            return _check_file(part)
        case _:
            text = part["refusal" if kind == "refusal" else "text"]
            wrong = not isinstance(text, str) or (not text and kind == "input_text")
            return ["has an empty text part"] if wrong else []


def _check_image(part: Item) -> list[str]:
    problems = [] if part.get("detail") in ("auto", "low", "high", "original") else ["has an image with invalid detail"]
    if not part.get("file_id") and not _matches(_IMAGE, part.get("image_url"), whole=False):
        problems.append("has an image that is neither a URL nor base64-encoded PNG, JPEG, GIF or WebP")
    return problems


def _check_file(part: Item) -> list[str]:
    sources = [key for key in ("file_data", "file_url", "file_id") if part.get(key)]
    if len(sources) != 1:
        return [f"has a file with {len(sources)} sources; expected one"]
    named = _is_text(part.get("filename"))
    if sources == ["file_data"] and not (named and _matches(_FILE, part["file_data"], whole=False)):
        return ["has a file that has no name or is not base64-encoded"]
    return []


def _matches(pattern: re.Pattern[str], value: object, *, whole: bool = True) -> bool:
    return isinstance(value, str) and (pattern.fullmatch(value) if whole else pattern.match(value)) is not None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
