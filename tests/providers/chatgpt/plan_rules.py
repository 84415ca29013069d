"""A ChatGPT plan's refusals of a Responses request, from OpenAI's page “Preview limitations”."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from tests.providers.openai.refusal import Refusal, Refused, refuse

NOT_TAKEN = (
    "background conversation max_output_tokens max_tool_calls metadata moderation multi_agent prompt"
    " prompt_cache_retention safety_identifier temperature top_logprobs top_p truncation user previous_response_id"
).split()
_TOOLS_NOT_TAKEN = ("image_generation", "file_search", "code_interpreter", "computer", "mcp", "tool_search")
UNSUPPORTED = "subscription_sharing_unsupported_capability"


def check_plan(body: Any, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the request with plain tools, as known to the Responses rules; raises Refused."""
    if not isinstance(body, dict):
        refuse("We could not parse the JSON body of your request.")
    for name in ("openai-organization", "openai-project"):
        if name in headers:
            _unsupported(f"The header {name} is not supported.", name)
    for name in NOT_TAKEN:
        if name in body:
            _unsupported(f"Unsupported parameter: {name}", name)
    if body.get("store") is not False:
        _unsupported("Store must be set to false", "store")
    if body.get("stream") is not True:
        _unsupported("Stream must be set to true", "stream")
    if not isinstance(body.get("input"), list):
        # Recorded by OpenAI's own kit in this shape.
        raise Refused(Refusal(422, "Input must be a list", "list_type", "input"))
    return {**body, "tools": _tools(body), "input": _input(body["input"])}


def _tools(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for number, tool in enumerate(body.get("tools") or ()):
        if tool.get("type") in ("function", "custom", *_TOOLS_NOT_TAKEN):
            _unsupported("Flat tools are not supported: use a namespace or additional_tools.", f"tools[{number}]")
        found += tool.get("tools") or ()
    for number, item in enumerate(body["input"]):
        if item.get("type") != "additional_tools":
            continue
        where = f"input[{number}]"
        if set(item) - {"type", "role", "tools", "id"} or item.get("role") != "developer" or not item.get("tools"):
            refuse(f"Invalid value for '{where}'.", where, "invalid_value")
        for tool in item["tools"]:
            if tool.get("type") == "function" and not {"name", "parameters", "strict"} <= set(tool):
                refuse(f"Missing required parameter in '{where}.tools'.", where, "missing_required_parameter")
            found.append(tool)
    return found


def _input(items: list[Any]) -> list[Any]:
    for number, item in enumerate(items):
        if item.get("type", "message") == "message" and item.get("role") == "system":
            _unsupported("System messages are not allowed", f"input[{number}]")
        for part in item["content"] if isinstance(item.get("content"), list) else ():
            if part.get("type") in ("input_audio", "input_video"):
                _unsupported("Audio and video are not supported", f"input[{number}]")
    return [item for item in items if item.get("type") != "additional_tools"]


def _unsupported(message: str, param: str) -> NoReturn:
    raise Refused(Refusal(400, message, UNSUPPORTED, param))
