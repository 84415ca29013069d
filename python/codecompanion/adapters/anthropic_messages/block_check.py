"""Checks a single content block against the Messages API's rules, independently of its surroundings.

Keys and shapes are those of the SDK's types (`Beta…BlockParam`); the other rules come from reported 400 errors. Blocks
of types that only the provider creates (server tools) are sent back unchanged and not examined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion.adapters.anthropic_messages.media import MAX_BASE64_BYTES
from codecompanion.formats.regex import regex

THINKING_KINDS = frozenset({"thinking", "redacted_thinking"})
_KEYS = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control", "transformations"}),
    "document": frozenset({"type", "source", "cache_control", "citations", "context", "title"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}),
    "compaction": frozenset({"type", "content", "encrypted_content", "signature", "tool_changes", "cache_control"}),
}
_SOURCE_KEYS = {
    "base64": frozenset({"type", "media_type", "data"}),
    "url": frozenset({"type", "url"}),
    "file": frozenset({"type", "file_id"}),
    "text": frozenset({"type", "media_type", "data"}),
    "content": frozenset({"type", "content"}),
}
_ONLY_IN = {
    **dict.fromkeys(("tool_use", "thinking", "redacted_thinking", "compaction"), "assistant"),
    **dict.fromkeys(("tool_result", "image", "document"), "user"),
}
_MEDIA_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_NESTED = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
_OF_SERVER_TOOLS = regex(
    r"(?:server|mcp)_tool_use|\w+_tool_result|mcp_tool_listing|container_upload|fallback|connector_text"
)
_ID = regex(r"[a-zA-Z0-9_-]+")
_CALLED_NAME = regex(r"[a-zA-Z0-9_-]{1,200}")


class BlockFacts(msgspec.Struct, frozen=True):
    """The facts about a block that are needed to check several blocks together.

    `problem` is the block's own error, or "". `call` is the id of a `tool_use`, or the id that a `tool_result` answers.
    `marks` are the lifetimes of the cache breakpoints on and in the block. `is_signed`: a compaction made on demand.
    `is_noop`: a compaction that failed.
    """

    kind: str
    problem: str = ""
    call: str = ""
    images: int = 0
    marks: tuple[str, ...] = ()
    is_signed: bool = False
    is_noop: bool = False


def read_block(block: Any, role: str, *, verbatim: bool = False) -> BlockFacts:
    """Return the facts about a block in a message with this role.

    verbatim: the block came from the provider and is sent back unchanged, even with keys that are newer than this
    table.
    """
    kind = block.get("type") if isinstance(block, Mapping) else None
    if not isinstance(kind, str):
        return BlockFacts("", "a block is not an object with a `type`")
    known = {key: block[key] for key in _KEYS.get(kind, ()) if key in block} if verbatim else block
    problem = "" if verbatim and kind not in _KEYS else _find_problem(kind, known, role)
    call = block.get("id" if kind == "tool_use" else "tool_use_id", "")
    inner = block.get("content") if kind == "tool_result" and isinstance(block.get("content"), list) else ()
    blocks = [block, *(one for one in inner or () if isinstance(one, Mapping))]
    marks = tuple(
        str(one["cache_control"].get("ttl", "5m")) for one in blocks if isinstance(one.get("cache_control"), Mapping)
    )
    return BlockFacts(
        kind=kind,
        problem=problem,
        call=call if isinstance(call, str) else "",
        images=sum(one.get("type") == "image" for one in blocks),
        marks=marks,
        is_signed=kind == "compaction" and block.get("signature") is not None,
        is_noop=kind == "compaction" and block.get("content") is None,
    )


def find_text_problem(block: Mapping[str, Any]) -> str:
    """Return the error in a text block, or "" if it is valid."""
    text = block.get("text")
    if not isinstance(text, str):
        return "a text block has no text"
    if not text.strip():
        return "a text block is empty or contains only whitespace"
    return ""


def _find_problem(kind: str, block: Mapping[str, Any], role: str) -> str:
    keys = _KEYS.get(kind)
    if keys is None:
        made_by_server = role == "assistant" and _OF_SERVER_TOOLS.fullmatch(kind)
        is_known = made_by_server or kind in _NESTED or role == "system"
        return "" if is_known else f"a {kind} block is not allowed in a message with the role {role!r}"
    if unknown := set(block) - keys:
        return f"a {kind} block has the unknown key {min(unknown)!r}"
    if role != _ONLY_IN.get(kind, role):
        return f"a {kind} block is not allowed in a message with the role {role!r}"
    match kind:
        case "text":
            return find_text_problem(block)
        case "image" | "document":
            return _source_problem(kind, block.get("source"))
        case "thinking":
            whole = isinstance(block.get("thinking"), str) and bool(block.get("signature"))
            return "" if whole else "a thinking block lacks its text or signature"
        case "redacted_thinking":
            return "" if isinstance(block.get("data"), str) else "a redacted_thinking block has no data"
        case "tool_use":
            return _call_problem(block)
        case "tool_result":
            return _result_problem(block)
        case _:
            wrong = block.get("content") == ""
            return "a compaction block has empty text; a failed one must have null" if wrong else ""


def _call_problem(block: Mapping[str, Any]) -> str:
    if not _ID.fullmatch(str(block.get("id", ""))):
        return f"the tool_use id {block.get('id')!r} contains invalid characters"
    if not _CALLED_NAME.fullmatch(str(block.get("name", ""))):
        return f"the called tool has the invalid name {block.get('name')!r}"
    return "" if isinstance(block.get("input"), Mapping) else "the input of a tool_use block is not an object"


def _result_problem(block: Mapping[str, Any]) -> str:
    if not _ID.fullmatch(str(block.get("tool_use_id", ""))):
        return f"the tool_use_id {block.get('tool_use_id')!r} contains invalid characters"
    if not isinstance(block.get("is_error", False), bool):
        return "is_error of a tool_result block is not a boolean"
    content = block.get("content", "")
    if isinstance(content, str):
        return ""
    for one in content if isinstance(content, list) else [None]:
        if not isinstance(one, Mapping) or one.get("type") not in _NESTED:
            return "the content of a tool_result block is neither text nor a list of allowed blocks"
        if one["type"] in _KEYS and (problem := _find_problem(one["type"], one, "user")):
            return f"{problem} (in a tool_result)"
    return ""


def _source_problem(kind: str, source: Any) -> str:
    form = source.get("type") if isinstance(source, Mapping) else None
    if form not in _SOURCE_KEYS or set(source) - _SOURCE_KEYS[form]:
        return f"the source of a {kind} block has an unknown format"
    if missing := _SOURCE_KEYS[form] - set(source):
        return f"the source of a {kind} block lacks {min(missing)!r}"
    if form == "base64" and kind == "image":
        if source["media_type"] not in _MEDIA_TYPES:
            return f"an image has the unsupported media type {source['media_type']!r}"
        if len(source["data"]) > MAX_BASE64_BYTES:
            return "an image is larger than 5 MB"
    if form == "base64" and not source["data"]:
        return f"a {kind} block has no data"
    return ""
