"""Converts content blocks of the Messages API to our format; Claude Code stores the same blocks.

A user message with tool results becomes one `tool` message per result, and a user message for its other content.
Reasoning is kept as text; signatures belong to the provider and are omitted. An unknown block is replaced by its type
in brackets.
"""

from __future__ import annotations

from typing import Any

from codecompanion.cli.importing import fields

USAGE = {
    "input_tokens": "input_tokens", "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens", "cache_write_tokens": "cache_creation_input_tokens",
}  # fmt: skip
A_BLOCK = 'a content block, {"type": …}'


def read_user(content: Any, where: str) -> list[dict[str, Any]]:
    """Return the messages for the content of one user message."""
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    messages: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for index, value in enumerate(fields.expect_list(content, where, "a string or a list of content blocks")):
        at = f"{where}: content[{index}]"
        block = fields.expect_object(value, at, A_BLOCK)
        if block.get("type") == "tool_result":
            call_id = fields.expect_text(block.get("tool_use_id"), at, "tool_use_id")
            result = {"role": "tool", "tool_call_id": call_id, "content": _read_result(block.get("content"), at)}
            messages.append(fields.with_meta(result, is_error=bool(block.get("is_error"))))
        else:
            parts.append(read_part(block, at))
    if parts:
        messages.append({"role": "user", "content": fields.joined(parts)})
    return messages


def read_assistant(content: Any, where: str) -> dict[str, Any]:
    """Return the message for the content of one reply."""
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    parts: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    thoughts: list[str] = []
    for index, value in enumerate(fields.expect_list(content, where, "a string or a list of content blocks")):
        at = f"{where}: content[{index}]"
        block = fields.expect_object(value, at, A_BLOCK)
        match block.get("type"):
            case "tool_use":
                name = fields.expect_text(block.get("name"), at, "name")
                calls.append(fields.make_call(fields.expect_text(block.get("id"), at, "id"), name, block.get("input")))
            case "thinking":
                thoughts.append(fields.expect_text(block.get("thinking"), at, "thinking"))
            case "redacted_thinking":
                continue
            case _:
                parts.append(read_part(block, at))
    message: dict[str, Any] = {"role": "assistant", "content": fields.joined(parts)}
    if any(thoughts):
        message["reasoning_content"] = "\n".join(filter(None, thoughts))
    if calls:
        message["tool_calls"] = calls
    return message


def read_part(block: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a block that is not a call, result or reasoning as a content part."""
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": fields.expect_text(block.get("text"), where, "text")}
    if kind == "image":
        source = fields.expect_object(block.get("source"), where, 'an image source, {"type", "media_type", "data"}')
        url = source.get("url") or f"data:{source.get('media_type', 'image/png')};base64,{source.get('data', '')}"
        return {"type": "image_url", "image_url": {"url": fields.expect_text(url, where, "source.url")}}
    name = block.get("title") or block.get("name") or ""
    return {"type": "text", "text": f"[{fields.expect_text(kind, where, 'type')}{f': {name}' if name else ''}]"}


def _read_result(content: Any, where: str) -> str | list[dict[str, Any]]:
    if content is None or isinstance(content, str):
        return content or ""
    blocks = fields.expect_list(content, where, "a string or a list of content blocks")
    return fields.joined([read_part(fields.expect_object(block, where, A_BLOCK), where) for block in blocks])


def read_usage(usage: Any) -> dict[str, int] | None:
    """Return the usage that the API reported for one call, with our field names."""
    return fields.count_tokens(usage, USAGE)
