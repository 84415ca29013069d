"""What OpenAI's Chat Completions endpoint refuses, as a function from a request to the error it answers.

Written from the API reference and from recorded 400s. Stricter than OpenAI in one point: empty messages are refused,
because several compatible endpoints refuse them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KNOWN_ARGUMENTS = frozenset(
    [
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options"),
        *("max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "stop", "seed", "user", "metadata"),
        *("presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "response_format"),
        *("reasoning_effort", "verbosity", "store", "service_tier", "prediction", "prompt_cache_key"),
    ]
)
MESSAGE_KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal"},
    "tool": {"role", "content", "tool_call_id"},
}
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True)
class Refusal:
    """An error answer: status and the fields of `error`."""

    status: int
    message: str
    code: str | None = None
    param: str | None = None
    type: str = "invalid_request_error"

    def body(self) -> dict[str, Any]:
        """Return the JSON body OpenAI would send."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def refusal_of(
    request: Any,
    *,
    models: tuple[str, ...],
    window: int,
    reasoning_fields: tuple[str, ...] = (),
    call_fields: tuple[str, ...] = (),
) -> Refusal | None:
    """Return why the endpoint would refuse the request, None when it would not.

    `models` () = any model. `window` is in tokens (characters / 4). `reasoning_fields` are accepted in assistant
    messages, as DeepSeek accepts `reasoning_content`; `call_fields` in their calls, as Gemini accepts `extra_content`.
    """
    try:
        _check_arguments(request, models)
        _check_messages(request["messages"], frozenset(reasoning_fields), frozenset(call_fields))
        _check_tools(request)
        _check_length(request, window)
    except _Refused as refused:
        return refused.refusal
    return None


def count_tokens(request: Mapping[str, Any]) -> int:
    """Return the server's own count: characters of all text, arguments, names and schemas, divided by four."""
    chars = len(str(request.get("tools") or ""))
    for message in request["messages"]:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content or ""}]
        chars += sum(len(part.get("text", "")) for part in parts)
        for call in message.get("tool_calls") or ():
            chars += len(call["function"]["name"]) + len(call["function"]["arguments"])
    return -(-chars // 4)


def _refuse(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
    raise _Refused(Refusal(status, message, code, param))


def _expect(value: Any, kind: type | tuple[type, ...], param: str) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        _refuse(f"Invalid type for '{param}': got {type(value).__name__} instead.", param, "invalid_type")


def _check_arguments(request: Any, models: tuple[str, ...]) -> None:
    if not isinstance(request, dict):
        _refuse("We could not parse the JSON body of your request.")
    for name in request:
        if name not in KNOWN_ARGUMENTS:
            _refuse(f"Unrecognized request argument supplied: {name}", name, "unknown_parameter")
    for name in ("model", "messages"):
        if name not in request:
            _refuse(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    _expect(request["model"], str, "model")
    if models and request["model"] not in models:
        text = f"The model `{request['model']}` does not exist or you do not have access to it."
        _refuse(text, None, "model_not_found", 404)
    if "max_tokens" in request and "max_completion_tokens" in request:
        _refuse("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    for name in ("max_tokens", "max_completion_tokens"):
        if name in request:
            _expect(request[name], int, name)
            if request[name] < 1:
                _refuse(f"Invalid '{name}': integer below minimum value.", name, "integer_below_min_value")
    _expect(request.get("stream", False), bool, "stream")
    if "stream_options" in request and not request.get("stream"):
        _refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")


def _check_messages(messages: Any, reasoning_fields: frozenset[str], call_fields: frozenset[str]) -> None:
    _expect(messages, list, "messages")
    if not messages:
        _refuse("Invalid 'messages': empty array. Expected an array with minimum length 1.", "messages", "empty_array")
    waiting: list[str] = []
    for index, message in enumerate(messages):
        at = f"messages[{index}]"
        _expect(message, dict, at)
        role = message.get("role")
        if role not in MESSAGE_KEYS:
            _refuse(f"Invalid value: '{role}'. Supported values are: {', '.join(MESSAGE_KEYS)}.", f"{at}.role")
        allowed = MESSAGE_KEYS[role] | (reasoning_fields if role == "assistant" else set())
        for key in message:
            if key not in allowed:
                _refuse(f"Unknown parameter: '{at}.{key}'.", f"{at}.{key}", "unknown_parameter")
        if role == "tool":
            _check_result(message, at, waiting)
            continue
        _check_all_answered(waiting, at)
        waiting = _check_calls(message, at, call_fields) if "tool_calls" in message else []
        _check_content(message, at, may_be_null=bool(waiting))
    _check_all_answered(waiting, "messages")


def _check_all_answered(waiting: list[str], at: str) -> None:
    if waiting:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
        )
        _refuse(text, at)


def _check_result(message: Mapping[str, Any], at: str, waiting: list[str]) -> None:
    call_id: Any = message.get("tool_call_id")
    _expect(call_id, str, f"{at}.tool_call_id")
    if call_id not in waiting:
        text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        _refuse(f"Invalid parameter: {text}", f"{at}.role")
    waiting.remove(call_id)
    _check_content(message, at, may_be_null=False)


def _check_calls(message: Mapping[str, Any], at: str, more: frozenset[str]) -> list[str]:
    calls = message["tool_calls"]
    _expect(calls, list, f"{at}.tool_calls")
    if message["role"] != "assistant" or not calls:
        _refuse(f"Invalid '{at}.tool_calls': empty array.", f"{at}.tool_calls", "empty_array")
    ids: list[str] = []
    for index, call in enumerate(calls):
        where = f"{at}.tool_calls[{index}]"
        if set(call) - more != {"id", "type", "function"} or call["type"] != "function":
            _refuse(f"Invalid '{where}': expected id, type 'function' and function.", where)
        _expect(call["id"], str, f"{where}.id")
        function = call["function"]
        if set(function) != {"name", "arguments"}:
            _refuse(f"Invalid '{where}.function': expected name and arguments.", where)
        _expect(function["arguments"], str, f"{where}.function.arguments")
        if not _TOOL_NAME.fullmatch(function["name"]):
            _refuse(f"Invalid '{where}.function.name': string does not match pattern.", where, "invalid_value")
        if not call["id"] or call["id"] in ids:
            _refuse(f"Duplicate value for '{where}.id'.", where, "duplicate_value")
        ids.append(call["id"])
    return ids


def _check_content(message: Mapping[str, Any], at: str, *, may_be_null: bool) -> None:
    content: Any = message.get("content")
    if content is None and may_be_null:
        return
    _expect(content, (str, list), f"{at}.content")
    if not content:
        _refuse(f"Invalid '{at}.content': expected a non-empty string or array.", f"{at}.content", "empty_content")
    if isinstance(content, str):
        return
    for index, part in enumerate(content):
        where = f"{at}.content[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str) and part["text"] and set(part) == {"type", "text"}:
            continue
        document = part.get("file") if kind == "file" and message["role"] == "user" else None
        if isinstance(document, dict) and set(document) == {"filename", "file_data"}:
            if not document["filename"] or not document["file_data"].startswith("data:application/pdf;base64,"):
                _refuse(f"Invalid '{where}.file': expected a name and PDF data.", where, "invalid_value")
            continue
        image = part.get("image_url") if kind == "image_url" and message["role"] == "user" else None
        url = image.get("url") if isinstance(image, dict) else None
        if not isinstance(url, str) or not re.match(r"https?://|data:image/[a-z+.-]+;base64,.", url):
            _refuse(f"Invalid '{where}': Content blocks are expected to be either text, image_url or file type.", where)


def _check_tools(request: Mapping[str, Any]) -> None:
    if "tools" not in request:
        if "parallel_tool_calls" in request:
            _refuse("'parallel_tool_calls' is only allowed when 'tools' are specified.", "parallel_tool_calls")
        return
    _expect(request["tools"], list, "tools")
    if not request["tools"]:
        _refuse("Invalid 'tools': empty array.", "tools", "empty_array")
    for index, tool in enumerate(request["tools"]):
        where = f"tools[{index}]"
        if set(tool) != {"type", "function"} or tool["type"] != "function":
            _refuse(f"Invalid value for '{where}'.", where)
        function = tool["function"]
        if not _TOOL_NAME.fullmatch(function.get("name", "")):
            _refuse(f"Invalid '{where}.function.name': string does not match pattern.", where, "invalid_value")
        if function.get("parameters", {}).get("type") != "object":
            text = f"Invalid schema for function '{function['name']}': schema must be a JSON Schema of type 'object'."
            _refuse(text, where, "invalid_function_parameters")


def _check_length(request: Mapping[str, Any], window: int) -> None:
    prompt = count_tokens(request)
    reply = int(request.get("max_completion_tokens") or request.get("max_tokens") or 0)
    if window and prompt + reply > window:
        text = (
            f"This model's maximum context length is {window} tokens. However, your messages resulted in "
            f"{prompt + reply} tokens. Please reduce the length of the messages."
        )
        _refuse(text, "messages", "context_length_exceeded")
