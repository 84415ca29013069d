"""What a Chat Completions endpoint refuses in a whole body: arguments, tools, each message, their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from codecompanion.adapters.openai_chat.body_check import FUNCTION_NAME, check_message

_TYPES: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "stream": (bool,),
    "stream_options": (dict,),
    "parallel_tool_calls": (bool,),
    "max_tokens": (int,),
    "max_completion_tokens": (int,),
    "temperature": (int, float),
    "top_p": (int, float),
}
KNOWN_KEYS = frozenset(
    [
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "metadata"),
        *("max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "stop", "seed", "user", "modalities"),
        *("presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "response_format"),
        *("reasoning_effort", "verbosity", "store", "service_tier", "prediction", "prompt_cache_key", "audio"),
        *("safety_identifier", "web_search_options", "prompt_cache_retention", "prompt_cache_options", "moderation"),
    ]
)


def check_body(body: Mapping[str, Any], extras: Iterable[str] = ()) -> list[str]:
    """Return one sentence per reason for which the endpoint would refuse the body; empty when there is none.

    `extras` are the arguments a compatible endpoint takes besides OpenAI's.
    """
    problems = [f"unknown argument {key!r}" for key in sorted(set(body) - KNOWN_KEYS - set(extras))]
    problems += [*_check_arguments(body), *_check_tools(body.get("tools"))]
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*problems, "messages are empty or no list"]
    for index, message in enumerate(messages):
        problems += [f"messages[{index}] {problem}" for problem in check_message(message)]
    return problems or _check_order(messages)


def _check_order(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    problems: list[str] = []
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                problems.append(f"messages[{index}] answers {message['tool_call_id']!r}, which no call waits for")
            continue
        problems += [f"messages[{index}] comes before the result of {call_id!r}" for call_id in waiting]
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return problems + [f"the call {call_id!r} has no result" for call_id in waiting]


def _check_arguments(body: Mapping[str, Any]) -> Iterator[str]:
    if not body.get("model"):
        yield "model is missing"
    for name, expected in _TYPES.items():
        value = body.get(name)
        if value is not None and type(value) not in expected:
            yield f"{name} is {type(value).__name__}"
    limits = [name for name in ("max_tokens", "max_completion_tokens") if name in body]
    if len(limits) > 1:
        yield "both max_tokens and max_completion_tokens are set"
    for name in limits:
        if type(body[name]) is int and body[name] < 1:
            yield f"{name} is below 1"
    if body.get("stream_options") is not None and body.get("stream") is not True:
        yield "stream_options without stream"
    if "parallel_tool_calls" in body and "tools" not in body:
        yield "parallel_tool_calls without tools"


def _check_tools(tools: object) -> Iterator[str]:
    if tools is None:
        return
    if not isinstance(tools, list) or not tools:
        yield "tools are empty or no list"
        return
    names: set[str] = set()
    for index, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or set(tool) != {"type", "function"} or tool["type"] != "function":
            yield f"tools[{index}] is no function"
            continue
        unknown = set(function) - {"name", "description", "parameters", "strict"}
        name, schema = function.get("name"), function.get("parameters")
        if unknown:
            yield f"tools[{index}] has the unknown keys {', '.join(sorted(unknown))}"
        if not isinstance(name, str) or not FUNCTION_NAME.fullmatch(name) or name in names:
            yield f"tools[{index}] has the name {name!r}, which is not valid or repeated"
        names.add(str(name))
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            yield f"tools[{index}] has no schema of type object"
        if not isinstance(function.get("strict"), bool | None) or not isinstance(function.get("description", ""), str):
            yield f"tools[{index}] has a description or strictness of the wrong type"
