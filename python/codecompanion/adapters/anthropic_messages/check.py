"""Checks a Messages request except for its messages: tools, thinking, context management, compaction.

The parts that grow with the conversation are checked in `block_check.py` and `order_check.py`. Facts that only the
server knows (whether a signature is genuine, whether a prompt fits) are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from codecompanion.adapters.anthropic_messages.block_check import find_text_problem
from codecompanion.adapters.anthropic_messages.parameters import (
    MAX_INSTRUCTIONS_LENGTH,
    SMALLEST_BUDGET,
    SMALLEST_TRIGGER,
)
from codecompanion.formats.regex import regex

_HOSTED_TOOL = regex(r"[a-z0-9_]+_\d{8}|mcp_toolset")
_TOOL_NAME = regex(r"[a-zA-Z0-9_-]{1,64}")
_TOOL_KEYS = frozenset(
    [
        *("type", "name", "description", "input_schema", "cache_control", "strict", "defer_loading"),
        *("allowed_callers", "eager_input_streaming", "input_examples"),
    ]
)
_COMBINATORS = frozenset({"oneOf", "allOf", "anyOf"})
_EDITS = ("clear_thinking_20251015", "clear_tool_uses_20250919", "compact_20260112")


def check_fields(
    fields: Mapping[str, Any], *, has_calls: bool, starts_with_thinking: bool | None, signed: bool
) -> list[str]:
    """Return the errors in a body, except in its messages; keys newer than this plugin are accepted.

    starts_with_thinking: whether the running tool turn begins with thinking, or None if no tool turn is running.
    signed: the messages begin with a compaction made on demand.
    """
    return [
        *_check_head(fields),
        *_check_system(fields),
        *_check_tools(fields, has_calls=has_calls),
        *_check_thinking(fields, starts_with_thinking=starts_with_thinking),
        *_check_context_management(fields, signed=signed),
        *_check_compaction(fields),
    ]


def _check_head(body: Mapping[str, Any]) -> Iterator[str]:
    if not body.get("model") or not isinstance(body["model"], str):
        yield "model is missing"
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        yield "max_tokens is not a positive integer"


def check_arguments(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems with arguments that the user may set and that are therefore not in this body."""
    if not isinstance(body.get("stream", False), bool):
        yield "stream is not a boolean"
    if any(not isinstance(word, str) or not word.strip() for word in body.get("stop_sequences") or ()):
        yield "a stop sequence is blank or not a string"
    metadata = body.get("metadata")
    if metadata is not None and (not isinstance(metadata, Mapping) or set(metadata) - {"user_id"}):
        yield "metadata may contain only user_id"
    if not isinstance(body.get("tool_choice"), Mapping | None):
        yield "tool_choice is not an object"


def _check_system(body: Mapping[str, Any]) -> Iterator[str]:
    system = body.get("system", ())
    for block in system if isinstance(system, list) else ():
        if block.get("type") != "text" or set(block) - {"type", "text", "cache_control", "citations"}:
            yield "the system prompt has a block that is not text"
        elif problem := find_text_problem(block):
            yield f"{problem} (in the system prompt)"


def _check_tools(body: Mapping[str, Any], *, has_calls: bool) -> Iterator[str]:
    tools = body.get("tools") or ()
    names = [tool.get("name") for tool in tools if "name" in tool]
    if len(set(names)) < len(names):
        yield "two tools have the same name"
    for tool in tools:
        if tool.get("type") not in (None, "custom"):
            if not _HOSTED_TOOL.fullmatch(str(tool["type"])):
                yield f"unknown tool type {tool['type']!r}"
            continue
        name, schema = tool.get("name"), tool.get("input_schema")
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            yield f"a tool has the invalid name {name!r}"
        if unknown := set(tool) - _TOOL_KEYS:
            yield f"the tool {name} has the unknown key {min(unknown)!r}"
        if not isinstance(schema, Mapping) or schema.get("type") != "object" or _COMBINATORS & set(schema):
            yield f"the schema of the tool {name} is not a plain object"
    choice = body.get("tool_choice")
    if choice is not None and not tools and not body.get("mcp_servers"):
        yield "tool_choice is set, but there are no tools"
    if isinstance(choice, Mapping) and choice.get("type") == "tool" and choice.get("name") not in names:
        yield "tool_choice names a tool that does not exist"
    if has_calls and not tools:
        yield "there are tool calls but no tools"


def _check_thinking(body: Mapping[str, Any], *, starts_with_thinking: bool | None) -> Iterator[str]:
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping):
        return
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive", "disabled", "between_tools"):
        yield f"unknown thinking type {kind!r}"
    if kind != "enabled":
        return
    budget, limit = thinking.get("budget_tokens"), body.get("max_tokens")
    if not isinstance(budget, int) or budget < SMALLEST_BUDGET:
        yield f"the thinking budget is below {SMALLEST_BUDGET}"
    elif isinstance(limit, int) and budget >= limit:
        yield "the thinking budget is not below max_tokens"
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") in ("any", "tool"):
        yield "a thinking budget cannot be combined with a forced tool"
    if starts_with_thinking is False:
        yield "the current turn does not begin with thinking"


def _check_context_management(body: Mapping[str, Any], *, signed: bool) -> Iterator[str]:
    management = body.get("context_management")
    if management is None:
        return
    edits = management.get("edits", ()) if isinstance(management, Mapping) else ()
    kinds = [edit.get("type") for edit in edits]
    if unknown := [kind for kind in kinds if kind not in _EDITS]:
        yield f"unknown edit type {unknown[0]!r}"
    if len(set(kinds)) < len(kinds):
        yield "an edit type occurs twice"
    if "clear_thinking_20251015" in kinds[1:]:
        yield "clear_thinking must be the first edit"
    for edit in edits:
        trigger = edit.get("trigger") or {}
        if edit.get("type") == "compact_20260112" and trigger.get("value", SMALLEST_TRIGGER) < SMALLEST_TRIGGER:
            yield f"the compaction trigger is below {SMALLEST_TRIGGER}"
    if "compact_20260112" in kinds and signed:
        yield "compaction cannot run after a signed compaction"


def _check_compaction(body: Mapping[str, Any]) -> Iterator[str]:
    compaction = body.get("compaction")
    if compaction is None:
        return
    if compaction.get("type") != "summarize" or set(compaction) - {"type", "instructions"}:
        yield "the compaction parameter has an unknown type or key"
    if len(compaction.get("instructions") or "") > MAX_INSTRUCTIONS_LENGTH:
        yield "the compaction instructions are too long"
    for name in ("context_management", "stop_sequences"):
        if body.get(name) is not None:
            yield f"{name} cannot be combined with compaction"
    if (body.get("output_config") or {}).get("format") is not None:
        yield "an output format cannot be combined with compaction"
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        yield "a forced tool cannot be combined with compaction"
