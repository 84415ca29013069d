"""`import --from openai`: Chat Completions traffic.

The file contains a request body `{"messages"}`, a pair `{"request", "response"}`, a bare list of messages, or one
message per line. The first choice of the response becomes the last message, which also gets the usage. `function_call`
and the role `function` of old requests become tool calls and tool results; parts other than text and images are
replaced by their type in brackets.
"""

from __future__ import annotations

from typing import Any

from codecompanion.cli.importing.api_traffic import Conversation, find_conversation
from codecompanion.cli.importing.fields import (
    Found,
    Skipped,
    count_tokens,
    expect_list,
    expect_object,
    expect_text,
    joined,
    make_call,
    numbered,
    with_meta,
)
from codecompanion.errors import InputError
from codecompanion.formats.json_words import wrong_field

EXPECTED = 'a Chat request, {"messages": […]}, a pair {"request", "response"}, or one message per line'
ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def read(raw: bytes, source: str, skipped: Skipped = None) -> list[dict[str, Any]]:
    """Return the messages of the conversation in our format.

    Raises:
        InputError: a value does not follow the API; the message names the file and line.
    """
    found = find_conversation(raw, source, EXPECTED, skipped)
    return read_messages([*found.messages, *_reply(found)], _usage(found))


def read_messages(items: list[Found], usage: dict[str, int] | None = None) -> list[dict[str, Any]]:
    """Return Chat messages in our format; `usage` is recorded on the last one."""
    messages: list[dict[str, Any]] = []
    open_function = ""
    for number, item in enumerate(items):
        value = expect_object(item.value, item.where, "a message object")
        role = value.get("role")
        if role not in ROLES:
            raise InputError(f"{item.where}: {wrong_field('role', role, 'one of ' + ', '.join(ROLES))}")
        message: dict[str, Any] = {"role": role, "content": read_content(value.get("content"), item.where)}
        if role == "assistant":
            open_function = f"call_{number}"
            message |= _read_reply(value, item.where, open_function)
        elif role == "tool":
            message["tool_call_id"] = expect_text(value.get("tool_call_id"), item.where, "tool_call_id")
        elif role == "function":
            message |= {"role": "tool", "tool_call_id": open_function}
        if isinstance(value.get("meta"), dict):
            message["meta"] = value["meta"]
        messages.append(message)
    if usage and messages:
        messages[-1] = with_meta(messages[-1], usage=usage)
    return messages


def _read_reply(value: dict[str, Any], where: str, function_id: str) -> dict[str, Any]:
    """Return the reasoning and tool calls of a reply as message fields."""
    fields: dict[str, Any] = {}
    thoughts = value.get("reasoning_content") or value.get("reasoning")
    if isinstance(thoughts, str):
        fields["reasoning_content"] = thoughts
    calls = [_read_call(item) for item in numbered(
        expect_list(value.get("tool_calls") or [], where, "a list of tool calls"), f"{where}: tool_calls")]  # fmt: skip
    legacy = value.get("function_call")
    if isinstance(legacy, dict):
        name = expect_text(legacy.get("name"), where, "function_call.name")
        calls.append(make_call(function_id, name, legacy.get("arguments")))
    if calls:
        fields["tool_calls"] = calls
    return fields


def _read_call(item: Found) -> dict[str, Any]:
    call = expect_object(item.value, item.where, "a tool call object")
    function = call.get("function") or call.get("custom")
    function = expect_object(function, f"{item.where}: function", '{"name", "arguments"}')
    name = expect_text(function.get("name"), item.where, "function.name")
    arguments = function.get("arguments", {"input": function["input"]} if "input" in function else {})
    return make_call(expect_text(call.get("id"), item.where, "id"), name, arguments)


def read_content(content: Any, where: str) -> str | list[dict[str, Any]]:
    """Return the content of a Chat message in our format."""
    if content is None or isinstance(content, str):
        return content or ""
    parts: list[dict[str, Any]] = []
    for item in numbered(expect_list(content, where, "a string or a list of parts"), f"{where}: content"):
        part = expect_object(item.value, item.where, 'a content part, {"type": …}')
        kind = expect_text(part.get("type"), item.where, "type")
        if kind in ("text", "refusal"):
            parts.append({"type": "text", "text": expect_text(part.get(kind), item.where, kind)})
        elif kind == "image_url":
            image = part.get("image_url")
            url = image.get("url") if isinstance(image, dict) else image
            parts.append({"type": "image_url", "image_url": {"url": expect_text(url, item.where, "image_url.url")}})
        else:
            parts.append({"type": "text", "text": f"[{kind}]"})
    return joined(parts)


def _reply(found: Conversation) -> list[Found]:
    if found.response is None:
        return []
    where = f"{found.where}: response.choices"
    choices = expect_list(found.response.get("choices"), where, "a list of choices")
    if not choices:
        return []
    choice = expect_object(choices[0], where, "a choice object")
    return [Found(choice.get("message"), f"{where}[0].message")]


def _usage(found: Conversation) -> dict[str, int] | None:
    """Return the token usage of the response; cached tokens are subtracted from the prompt tokens."""
    usage = found.response.get("usage") if found.response is not None else None
    counted = count_tokens(usage, {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"})
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    cached = (count_tokens(details, {"cache_read_tokens": "cached_tokens"}) or {}).get("cache_read_tokens", 0)
    if counted and cached:
        counted |= {"input_tokens": max(0, counted.get("input_tokens", 0) - cached), "cache_read_tokens": cached}
    return counted
