"""`import --from anthropic`: read Messages API traffic.

The file contains a request body `{"system", "messages"}`, a pair `{"request", "response"}`, a bare list of messages, or
one message per line. The response is the last message, with its usage.
"""

from __future__ import annotations

from typing import Any

from codecompanion.cli.importing.anthropic_blocks import A_BLOCK, read_assistant, read_part, read_usage, read_user
from codecompanion.cli.importing.api_traffic import Conversation, find_conversation
from codecompanion.cli.importing.fields import Skipped, expect_list, expect_object, joined, numbered, with_meta
from codecompanion.errors import InputError
from codecompanion.formats.json_words import wrong_field

EXPECTED = 'a Messages request, {"messages": […]}, a pair {"request", "response"}, or one message per line'


def read(raw: bytes, source: str, skipped: Skipped = None) -> list[dict[str, Any]]:
    """Return the messages of the conversation.

    Raises:
        InputError: a value does not follow the API; the message names the file and line.
    """
    found = find_conversation(raw, source, EXPECTED, skipped)
    messages = _read_system(found)
    for item in found.messages:
        message = expect_object(item.value, item.where, "a message object")
        role = message.get("role")
        if role == "user":
            messages += read_user(message.get("content"), item.where)
        elif role == "assistant":
            messages.append(read_assistant(message.get("content"), item.where))
        elif role == "system":
            messages.append({"role": "system", "content": _read_text(message.get("content"), item.where)})
        else:
            raise InputError(f"{item.where}: {wrong_field('role', role, 'user, assistant or system')}")
    if found.response is not None:
        where = f"{found.where}: response"
        reply = read_assistant(found.response.get("content"), where)
        messages.append(with_meta(reply, usage=read_usage(found.response.get("usage"))))
    return messages


def _read_system(found: Conversation) -> list[dict[str, Any]]:
    system = found.request.get("system")
    if not system:
        return []
    return [{"role": "system", "content": _read_text(system, f"{found.where}: system")}]


def _read_text(content: Any, where: str) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    blocks = expect_list(content, where, "a string or a list of text blocks")
    return joined([read_part(expect_object(item.value, item.where, A_BLOCK), item.where)
                   for item in numbered(blocks, where)])  # fmt: skip
