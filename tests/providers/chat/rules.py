"""The rules of OpenAI's Chat Completions endpoint, as a function from a request to its error.

Written from the API reference, the SDK's types (`wire_schemas.py`) and recorded 400s. They are stricter than OpenAI in
one respect: empty messages are refused, because several compatible endpoints refuse them. Tests must list extensions of
compatible endpoints (`Extras`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.providers.chat.prompt import lay_out
from tests.providers.openai.refusal import Refusal, Refused, check_schema, expect, refuse
from tests.providers.openai.tool_rules import check_function, check_name

_PDF = "data:application/pdf;base64,"
_IMAGE = re.compile(r"https?://|data:image/[a-z+.-]+;base64,.")
ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True)
class Extras:
    """Fields that an endpoint accepts and OpenAI does not.

    arguments: fields of the request. reasoning_fields: fields of assistant messages, such as DeepSeek's
    `reasoning_content`. call_fields: fields of their tool calls, such as Gemini's `extra_content`.
    """

    arguments: tuple[str, ...] = ()
    reasoning_fields: tuple[str, ...] = ()
    call_fields: tuple[str, ...] = ()

    def stripped(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request without these fields."""
        messages = [self._stripped_message(message) for message in request["messages"]]
        return {**{key: request[key] for key in request if key not in self.arguments}, "messages": messages}

    def _stripped_message(self, message: Any) -> Any:
        if not isinstance(message, Mapping) or message.get("role") != "assistant":
            return message
        kept = {key: value for key, value in message.items() if key not in self.reasoning_fields}
        if self.call_fields and isinstance(kept.get("tool_calls"), list):
            kept["tool_calls"] = [
                {key: call[key] for key in call if key not in self.call_fields} for call in kept["tool_calls"]
            ]
        return kept


def refusal_of(request: Any, *, models: tuple[str, ...], window: int, extras: Extras | None = None) -> Refusal | None:
    """Return the reason for refusing the request, or None if it is accepted.

    `models`: () accepts any model. `window` is in tokens, by the fakes' own count.
    """
    try:
        _check_arguments(request, models)
        stripped = (extras or Extras()).stripped(request)
        check_schema("openai.chat", stripped)
        _check_limits(request)
        _check_messages(stripped["messages"])
        _check_tools(request)
        _check_length(request, window)
    except Refused as refused:
        return _as_chat_says(refused.refusal)
    return None


def count_tokens(request: Mapping[str, Any]) -> int:
    """Return the server's own count of the prompt."""
    return len(lay_out(request))


def _as_chat_says(refusal: Refusal) -> Refusal:
    """Return the refusal with this endpoint's wording for unknown arguments."""
    if refusal.code != "unknown_parameter" or not re.fullmatch(r"\w+", refusal.param or ""):
        return refusal
    return Refusal(400, f"Unrecognized request argument supplied: {refusal.param}", refusal.code, refusal.param)


def _check_arguments(request: Any, models: tuple[str, ...]) -> None:
    if not isinstance(request, dict):
        refuse("We could not parse the JSON body of your request.")
    for name in ("model", "messages"):
        if name not in request:
            refuse(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    if models and isinstance(request["model"], str) and request["model"] not in models:
        text = f"The model `{request['model']}` does not exist or you do not have access to it."
        refuse(text, None, "model_not_found", 404)
    expect(request["messages"], list, "messages")
    if not request["messages"]:
        text = "empty array. Expected an array with minimum length 1."
        refuse(f"Invalid 'messages': {text}", "messages", "empty_array")
    for index, message in enumerate(request["messages"]):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES:
            text = f"Supported values are: {', '.join(ROLES)}."
            refuse(f"Invalid value: '{role}'. {text}", f"messages[{index}].role", "invalid_value")


def _check_limits(request: Mapping[str, Any]) -> None:
    if "max_tokens" in request and "max_completion_tokens" in request:
        refuse("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    for name in ("max_tokens", "max_completion_tokens"):
        if request.get(name) is not None and request[name] < 1:
            refuse(f"Invalid '{name}': integer below minimum value.", name, "integer_below_min_value")
    if "stream_options" in request and not request.get("stream"):
        refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")


def _check_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    waiting: list[str] = []
    for index, message in enumerate(messages):
        at = f"messages[{index}]"
        if message["role"] == "tool":
            _check_result(message, at, waiting)
            continue
        _check_all_answered(waiting, at)
        waiting = _check_calls(message, at) if "tool_calls" in message else []
        _check_content(message, at, may_be_null=bool(waiting))
    _check_all_answered(waiting, "messages")


def _check_all_answered(waiting: list[str], at: str) -> None:
    if waiting:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
        )
        refuse(text, at)


def _check_result(message: Mapping[str, Any], at: str, waiting: list[str]) -> None:
    if message["tool_call_id"] not in waiting:
        text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        refuse(f"Invalid parameter: {text}", f"{at}.role")
    waiting.remove(message["tool_call_id"])
    _check_content(message, at, may_be_null=False)


def _check_calls(message: Mapping[str, Any], at: str) -> list[str]:
    if not message["tool_calls"]:
        refuse(f"Invalid '{at}.tool_calls': empty array.", f"{at}.tool_calls", "empty_array")
    ids: list[str] = []
    for index, call in enumerate(message["tool_calls"]):
        where = f"{at}.tool_calls[{index}]"
        if call["type"] != "function":
            refuse(f"Invalid '{where}': custom tools are not simulated by this server.", where)
        check_name(call["function"]["name"], f"{where}.function.name")
        if not call["id"] or call["id"] in ids:
            refuse(f"Duplicate value for '{where}.id'.", where, "duplicate_value")
        ids.append(call["id"])
    return ids


def _check_content(message: Mapping[str, Any], at: str, *, may_be_null: bool) -> None:
    content: Any = message.get("content")
    if content is None and may_be_null:
        return
    expect(content, (str, list), f"{at}.content")
    if not content:
        refuse(f"Invalid '{at}.content': expected a non-empty string or array.", f"{at}.content", "empty_content")
    if isinstance(content, str):
        return
    for index, part in enumerate(content):
        _check_part(part, message["role"], f"{at}.content[{index}]")


def _check_part(part: Mapping[str, Any], role: str, where: str) -> None:
    match part["type"]:
        case "text" if part["text"]:
            return
        case "file" if role == "user":
            document = part["file"]
            if not document.get("filename") or not str(document.get("file_data")).startswith(_PDF):
                refuse(f"Invalid '{where}.file': expected a name and PDF data.", where, "invalid_value")
            return
        case "image_url" if role == "user" and _IMAGE.match(part["image_url"]["url"]):
            return
    refuse(f"Invalid '{where}': Content blocks are expected to be either text, image_url or file type.", where)


def _check_tools(request: Mapping[str, Any]) -> None:
    if "tools" not in request:
        if "parallel_tool_calls" in request:
            refuse("'parallel_tool_calls' is only allowed when 'tools' are specified.", "parallel_tool_calls")
        return
    if not request["tools"]:
        refuse("Invalid 'tools': empty array.", "tools", "empty_array")
    taken: set[str] = set()
    for index, tool in enumerate(request["tools"]):
        if tool["type"] != "function":
            refuse(f"Invalid value for 'tools[{index}]': not simulated by this server.", f"tools[{index}]")
        check_function(tool["function"], f"tools[{index}].function", taken)


def _check_length(request: Mapping[str, Any], window: int) -> None:
    prompt = count_tokens(request) if window else 0
    reply = int(request.get("max_completion_tokens") or request.get("max_tokens") or 0)
    if window and prompt + reply > window:
        text = (
            f"This model's maximum context length is {window} tokens. However, your messages resulted in "
            f"{prompt + reply} tokens. Please reduce the length of the messages."
        )
        refuse(text, "messages", "context_length_exceeded")
