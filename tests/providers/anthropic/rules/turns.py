"""The provider's rules for messages: empty texts, unpaired calls and results, cache breakpoints, images, tools.

From the API reference, the pages on tool use, prompt caching and vision, and from reported 400s, with their wording.
Pairing is checked after consecutive messages of one role have been merged, as the provider does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.providers.anthropic.images import image_size
from tests.providers.anthropic.models import ModelSpec
from tests.providers.anthropic.prompt import Block, Placed, Turn
from tests.providers.anthropic.refusals import refuse

MAX_BREAKPOINTS = 4
MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""Limit for base64 data, as on Bedrock and Google Cloud; Anthropic's own endpoint now accepts 10 MB."""
MAX_IMAGE_PX = 8000
MANY_IMAGES = 20
MANY_IMAGES_PX = 2000
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_ONLY_IN = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
    "image": "user",
    "document": "user",
}


def check_tools(body: Mapping[str, Any], placed: Sequence[Placed]) -> None:
    """Refuse invalid tools, a choice of a missing tool, and calls in a request without tools."""
    tools = body.get("tools", ())
    names = [tool["name"] for tool in tools if "name" in tool]
    for number, tool in enumerate(tools):
        if tool.get("type") not in (None, "custom"):
            continue
        path = f"tools.{number}.custom"
        if not _TOOL_NAME.fullmatch(tool["name"]):
            refuse(f"{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        if tool["input_schema"].get("type") != "object":
            refuse(f"{path}.input_schema.type: Input should be 'object'")
        if {"oneOf", "allOf", "anyOf"} & set(tool["input_schema"]):
            refuse(f"{path}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level")
    if len(set(names)) < len(names):
        refuse("tools: Tool names must be unique.")
    choice = body.get("tool_choice")
    if choice is not None and not tools:
        refuse("tool_choice may only be specified while providing tools.")
    if choice is not None and choice["type"] == "tool" and choice["name"] not in names:
        refuse(f"Tool '{choice['name']}' not found in provided tools")
    if not tools and any(one.kind in ("tool_use", "tool_result") for one in placed):
        refuse("Requests which include `tool_use` or `tool_result` blocks must define tools.")


def check_breakpoints(body: Mapping[str, Any]) -> None:
    """Refuse more than four cache breakpoints, one on an empty text, and a longer lifetime after a shorter one."""
    marked = [(path, block) for path, block in _markable(body) if block.get("cache_control")]
    for path, block in marked:
        if block.get("type") == "text" and not block["text"]:
            refuse(f"{path}.text: cache_control cannot be set for empty text blocks")
    found = len(marked) + (body.get("cache_control") is not None)
    if found > MAX_BREAKPOINTS:
        refuse(f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {found}.")
    lifetimes = [block["cache_control"].get("ttl", "5m") for _, block in marked]
    if "1h" in lifetimes[lifetimes.index("5m") if "5m" in lifetimes else len(lifetimes) :]:
        refuse("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.")


def _markable(body: Mapping[str, Any]) -> Iterator[tuple[str, Block]]:
    """Yield everything that can carry a breakpoint, in the order of the prompt."""
    for name in ("tools", "system"):
        given = body.get(name, ())
        yield from ((f"{name}.{k}", block) for k, block in enumerate(() if isinstance(given, str) else given))
    for number, message in enumerate(body["messages"]):
        content = message.get("content", ())
        for index, block in enumerate(() if isinstance(content, str) else content):
            path = f"messages.{number}.content.{index}"
            inner = block.get("content") if block["type"] == "tool_result" else None
            if isinstance(inner, list):
                yield from ((f"{path}.tool_result.content.{k}", part) for k, part in enumerate(inner))
            yield path, block


def check_contents(body: Mapping[str, Any], placed: Sequence[Placed]) -> None:
    """Refuse messages and texts without content, and blocks in a message of the wrong role."""
    last = len(body["messages"]) - 1
    for number, message in enumerate(body["messages"]):
        if not message.get("content") and (number < last or message["role"] != "assistant"):
            text = "all messages must have non-empty content except for the optional final assistant message"
            refuse(f"messages.{number}: {text}")
    for one in placed:
        texts = [block["text"] for block in (one.block, *one.inner) if block["type"] == "text"]
        if "" in texts:
            refuse("messages: text content blocks must be non-empty")
        if one.kind == "text" and not one.block["text"].strip():
            refuse("messages: text content blocks must contain non-whitespace text")
        if one.role != "system" and one.role != _ONLY_IN.get(one.kind, one.role):
            refuse(f"messages.{one.message}: `{one.kind}` blocks can only be in `{_ONLY_IN[one.kind]}` messages")
    system = body.get("system", ())
    if not isinstance(system, str) and any(block["type"] == "text" and not block["text"] for block in system):
        refuse("system: text content blocks must be non-empty")


def check_roles(body: Mapping[str, Any], model: ModelSpec, *, leading_assistant: bool) -> None:
    """Refuse requests without messages, a first message of the wrong role, and misplaced system messages."""
    roles = [message["role"] for message in body["messages"]]
    if not roles:
        refuse("messages: at least one message is required")
    if roles[0] == "assistant" and not leading_assistant and not _begins_with_compaction(body["messages"][0]):
        refuse('messages: first message must use the "user" role')
    for number, role in enumerate(roles):
        if role != "system":
            continue
        if not model.system_messages:
            refuse(f"messages.{number}.role: role 'system' is not supported on this model")
        if number == 0 or roles[number - 1] == "assistant":
            refuse(f"messages.{number}: a system message must follow a user message")
        if number + 1 < len(roles) and roles[number + 1] == "user":
            refuse(f"messages.{number}: a system message must be last or be followed by an assistant message")


def _begins_with_compaction(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return not isinstance(content, str) and bool(content) and content[0]["type"] == "compaction"


def check_pairing(turns: Sequence[Turn]) -> None:
    """Refuse calls without results at the start of the next turn, and results without a call."""
    seen: set[str] = set()
    waiting: dict[str, Placed] = {}
    for turn in turns:
        if turn.role == "system":
            continue
        at_start = True
        answered: set[str] = set()
        for one in turn.blocks:
            match one.kind:
                case "tool_result":
                    _check_result(one, waiting, answered)
                    if at_start:
                        answered.add(one.block["tool_use_id"])
                case "tool_use":
                    _check_call(one, seen)
                    seen.add(one.block["id"])
            at_start = at_start and one.kind == "tool_result"
        _check_all_answered(waiting, answered)
        waiting = {one.block["id"]: one for one in turn.blocks if one.kind == "tool_use"}
    _check_all_answered(waiting, set())


def _check_call(one: Placed, seen: set[str]) -> None:
    if not _CALL_ID.fullmatch(one.block["id"]):
        refuse(f"{one.path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,200}", one.block["name"]):
        refuse(f"{one.path}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'")
    if one.block["id"] in seen:
        refuse(f"{one.path}: `tool_use` ids must be unique")


def _check_result(one: Placed, waiting: Mapping[str, Placed], answered: set[str]) -> None:
    call_id = one.block["tool_use_id"]
    if not _CALL_ID.fullmatch(call_id):
        refuse(f"{one.path}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if call_id in answered:
        text = f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {call_id}"
        refuse(f"{one.path}: {text}")
    if call_id not in waiting:
        text = f"unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. Each `tool_result` block must have"
        refuse(f"{one.path}: {text} a corresponding `tool_use` block in the previous message.")


def _check_all_answered(waiting: Mapping[str, Placed], answered: set[str]) -> None:
    missing = [call_id for call_id in waiting if call_id not in answered]
    if missing:
        text = "`tool_use` ids were found without `tool_result` blocks immediately after"
        rule = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        refuse(f"messages.{waiting[missing[0]].message}: {text}: {', '.join(missing)}. {rule}")


def check_images(placed: Sequence[Placed], model: ModelSpec) -> None:
    """Refuse too many, too large or invalid images."""
    blocks = [(one.path, block) for one in placed for block in (one.block, *one.inner)]
    images = [(path, block["source"]) for path, block in blocks if block["type"] == "image"]
    if len(images) > model.max_images:
        refuse(f"messages: Too much media: 0 document pages + {len(images)} images > {model.max_images}")
    many = len(images) > MANY_IMAGES
    limit = MANY_IMAGES_PX if many else MAX_IMAGE_PX
    for path, source in images:
        if source["type"] != "base64":
            continue
        given = len(source["data"])
        if given > MAX_IMAGE_BYTES:
            text = f"image exceeds 5 MB maximum: {given} bytes > {MAX_IMAGE_BYTES} bytes"
            refuse(f"{path}.image.source.base64: {text}")
        size = image_size(source)
        if size is None:
            refuse(f"{path}.image.source.base64.data: Image does not match the provided media type")
        if max(size) > limit:
            text = "At least one of the image dimensions exceed max allowed size"
            refuse(
                f"{path}.image.source.base64.data: {text}{' for many-image requests' if many else ''}: {limit} pixels"
            )
