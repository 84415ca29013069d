"""The tokens of a Chat Completions request in order, tools before messages, as counted and cached by the fake."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.providers.loopback.token_count import IMAGE_TOKENS, MESSAGE_TOKENS, REPLY_TOKENS, Prompt

_FILE_TOKENS = 1000


def lay_out(request: Mapping[str, Any]) -> Prompt:
    """Return the tokens of the request. Fields that only some endpoints know (such as reasoning) count as text."""
    prompt = Prompt()
    for tool in request.get("tools") or ():
        function = tool["function"]
        prompt.add_text("\n".join(str(function.get(name) or "") for name in ("name", "description")))
        prompt.add_text(json.dumps(function.get("parameters"), ensure_ascii=False, separators=(",", ":")))
    for message in request["messages"]:
        prompt.add_marks(message["role"], MESSAGE_TOKENS)
        for key, value in message.items():
            if isinstance(value, str) and key not in ("role", "tool_call_id", "content"):
                prompt.add_text(value)
        _add_content(prompt, message.get("content"))
        for call in message.get("tool_calls") or ():
            prompt.add_text(call["function"]["name"])
            prompt.add_text(call["function"]["arguments"])
    prompt.add_marks("reply", REPLY_TOKENS)
    return prompt


def _add_content(prompt: Prompt, content: str | Sequence[Mapping[str, Any]] | None) -> None:
    if content is None or isinstance(content, str):
        prompt.add_text(content or "")
        return
    for part in content:
        match part["type"]:
            case "image_url":
                prompt.add_marks(part["image_url"]["url"], IMAGE_TOKENS[part["image_url"].get("detail", "auto")])
            case "file":
                prompt.add_marks(str(part["file"].get("file_data")), _FILE_TOKENS)
            case _:
                prompt.add_text(part["text"])
