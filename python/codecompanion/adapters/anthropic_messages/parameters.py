"""Sets the fields of a Messages body other than the messages.

They are limits, thinking, context management, tools, breakpoints and betas. Sources: the API reference, the pages
"Threshold compaction", "Compaction on demand", "Context editing", "Prompt caching", "Thinking" and "Preserved
thinking"; R-536, R-540.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from codecompanion.adapters.anthropic_messages.options import MessagesOptions, ToolClearing
from codecompanion.model.messages import ToolSpec
from codecompanion.prompts import load

THRESHOLD_BETA = "compact-2026-01-12"
ON_DEMAND_BETA = "compact-2026-09-04"
EDITING_BETA = "context-management-2025-06-27"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
BETA_HEADER = "anthropic-beta"
SMALLEST_TRIGGER = 50_000
SMALLEST_BUDGET = 1_024
MAX_INSTRUCTIONS_LENGTH = 16_384
_COUNTED = ("thinking", "tool_choice", "output_config", "mcp_servers", "speed")
_COMBINATORS = ("oneOf", "allOf", "anyOf")


class Head(msgspec.Struct, frozen=True):
    """The fields before the messages. `mark` is the value of a cache breakpoint, or None for no breakpoints."""

    fields: dict[str, Any]
    betas: tuple[str, ...] = ()
    mark: dict[str, str] | None = None


def threshold_edits(options: MessagesOptions, compact_at: int) -> list[dict[str, Any]]:
    """Return the edits that the server makes to a prompt. Clearing is first, as it may make compaction unnecessary."""
    edits: list[dict[str, Any]] = []
    if options.clear_tool_uses is not None:
        edits.append(_clearing(options.clear_tool_uses))
    if compact_at > 0:
        trigger = {"type": "input_tokens", "value": max(SMALLEST_TRIGGER, compact_at)}
        edit: dict[str, Any] = {"type": "compact_20260112", "trigger": trigger}
        if options.compaction_instructions.strip():
            edit["instructions"] = options.compaction_instructions
        if options.pause_after_compaction:
            edit["pause_after_compaction"] = True
        edits.append(edit)
    return edits


def compaction_parameter(options: MessagesOptions, instructions: str) -> dict[str, Any]:
    """Return the parameter that requests compaction on demand.

    Instructions replace the provider's own prompt entirely, so the user's words are appended to our complete prompt.
    """
    prompt = options.compaction_instructions.strip()
    if instructions.strip():
        prompt = f"{prompt or load('native_compaction')}\n\n{instructions.strip()}"
    return {"type": "summarize", **({"instructions": prompt[:MAX_INSTRUCTIONS_LENGTH]} if prompt else {})}


def without_conflicts(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters except those that conflict with compaction on demand."""
    kept = {name: value for name, value in parameters.items() if name != "stop_sequences"}
    choice = kept.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") in ("any", "tool"):
        del kept["tool_choice"]
    config = kept.get("output_config")
    if isinstance(config, Mapping):
        kept["output_config"] = {name: value for name, value in config.items() if name not in ("format", "task_budget")}
    return kept


def counted(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that the count endpoint accepts."""
    return {name: parameters[name] for name in _COUNTED if name in parameters}


def fit_thinking(thinking: Any, max_tokens: int, *, lacks_start: bool) -> Any:
    """Return a thinking configuration that is valid for this request.

    lacks_start: a tool loop is running whose first reply does not begin with thinking (it is from another adapter, or
    was cut off). A thinking budget (`enabled`) would then be refused, so this request omits it; `adaptive` is accepted.
    A budget that does not fit below `max_tokens` is set to half of it, or thinking is disabled if that is too small.
    """
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return thinking
    budget = thinking.get("budget_tokens")
    if lacks_start or not isinstance(budget, int):
        return {"type": "disabled"} if lacks_start else thinking
    if budget < max_tokens or not max_tokens:
        return thinking
    half = max_tokens // 2
    return {**thinking, "budget_tokens": half} if half >= SMALLEST_BUDGET else {"type": "disabled"}


def drop_mismatched_thinking(thinking: Any) -> Any:
    """Return the configuration with which the server drops thinking from a changed conversation instead of refusing it.

    Client-side editing changes the messages before earlier thinking; models with preserved thinking detect it (R-511).
    """
    given = dict(thinking) if isinstance(thinking, Mapping) else {"type": "adaptive"}
    if given.get("type") not in ("enabled", "adaptive") or given.get("block_binding"):
        return thinking
    return {**given, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def can_drop_mismatched_thinking(thinking: Any) -> bool:
    """Return whether this configuration accepts `block_binding`; otherwise no thinking may be sent back."""
    return not isinstance(thinking, Mapping) or thinking.get("type") in ("enabled", "adaptive")


def needed_betas(fields: Mapping[str, Any], signed: bool | None) -> set[str]:
    """Return the betas that a body needs.

    `signed` is whether the compaction in its messages is signed, or None if there is no compaction.
    """
    betas: set[str] = set()
    edits = (fields.get("context_management") or {}).get("edits", ())
    if edits:
        betas.add(EDITING_BETA)
    if signed is False or any(edit["type"] == "compact_20260112" for edit in edits):
        betas.add(THRESHOLD_BETA)
    if signed or "compaction" in fields:
        betas.add(ON_DEMAND_BETA)
    thinking = fields.get("thinking")
    if isinstance(thinking, Mapping) and thinking.get("block_binding"):
        betas.add(BINDING_BETA)
    return betas


def beta_header(given: Mapping[str, str], betas: Iterable[str]) -> dict[str, str]:
    """Return the header with the request's betas after those that the user set."""
    own = next((value for name, value in given.items() if name.lower() == BETA_HEADER), "")
    names = dict.fromkeys(name.strip() for name in own.split(",") if name.strip())
    names.update(dict.fromkeys(sorted(betas)))
    return {BETA_HEADER: ",".join(names)} if names else {}


def add_tools(head: Head, system: Sequence[str], tools: Sequence[ToolSpec], called: Sequence[str]) -> dict[str, Any]:
    """Return the fields with the system prompt and tools, each ending in a cache breakpoint.

    A conversation with calls must define tools: if the request has none, the called tools are declared but may not be
    called again.
    """
    fields = dict(head.fields)
    mark = {"cache_control": head.mark} if head.mark is not None else {}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in system]
    if blocks:
        blocks[-1] |= mark
        fields["system"] = blocks
    rendered = [_render_tool(tool) for tool in tools]
    if not rendered:
        rendered = [{"name": name, "input_schema": {"type": "object"}} for name in called]
        if not fields.get("mcp_servers"):
            fields.pop("tool_choice", None)
        if rendered:
            fields["tool_choice"] = {"type": "none"}
    if rendered:
        rendered[-1] |= mark
        fields["tools"] = rendered
    return fields


def _render_tool(tool: ToolSpec) -> dict[str, Any]:
    schema = {name: value for name, value in tool.parameters.items() if name not in _COMBINATORS}
    schema["type"] = "object"
    about = {"description": tool.description} if tool.description.strip() else {}
    return {"name": tool.name, **about, "input_schema": schema}


def _clearing(clearing: ToolClearing) -> dict[str, Any]:
    edit: dict[str, Any] = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": clearing.trigger},
        "keep": {"type": "tool_uses", "value": clearing.keep},
    }
    if clearing.exclude_tools:
        edit["exclude_tools"] = list(clearing.exclude_tools)
    if clearing.clear_at_least:
        edit["clear_at_least"] = {"type": "input_tokens", "value": clearing.clear_at_least}
    return edit
