"""Context editing as the provider does it before a model sees the prompt: `clear_tool_uses`, `clear_thinking`.

From the page "Context editing" (defaults: from 100,000 tokens, keeping three tool uses or one turn of thinking).
Threshold compaction is only decided on here; `simulation.py` performs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.providers.anthropic.prompt import THINKING_KINDS, Placed, Prompt, merge_turns, prompt_of
from tests.providers.anthropic.rules.compaction import DEFAULT_TRIGGER, edits_of

CLEARED = "[Old tool result content cleared]"
DEFAULT_CLEARING = {"type": "input_tokens", "value": 100_000}
DEFAULT_KEPT = 3


@dataclass(frozen=True)
class Plan:
    """The plan for a request: the prompt after editing, the edits, and whether it is compacted first.

    `original_tokens` is the size of the prompt as it was sent, without applying earlier compactions.
    """

    prompt: Prompt
    applied: tuple[dict[str, Any], ...]
    original_tokens: int
    compaction: Mapping[str, Any] | None = None


def plan_request(body: Mapping[str, Any]) -> Plan:
    """Return the context management plan of a request, strategy by strategy in the given order."""
    sent = prompt_of(body)
    prompt = sent.from_last_summary()
    applied: list[dict[str, Any]] = []
    compaction = None
    for edit in edits_of(body):
        before = prompt.tokens
        match edit["type"]:
            case "clear_thinking_20251015":
                prompt, turns = _clear_thinking(prompt, edit)
                report = {"cleared_thinking_turns": turns}
            case "clear_tool_uses_20250919":
                prompt, uses = _clear_tool_uses(prompt, edit)
                report = {"cleared_tool_uses": uses}
            case _:
                if before >= (edit.get("trigger") or {}).get("value", DEFAULT_TRIGGER):
                    compaction = edit
                continue
        if any(report.values()):
            applied.append({"type": edit["type"], **report, "cleared_input_tokens": before - prompt.tokens})
    return Plan(prompt, tuple(applied), sent.tokens, compaction)


def _clear_thinking(prompt: Prompt, edit: Mapping[str, Any]) -> tuple[Prompt, int]:
    keep = edit.get("keep", {"type": "thinking_turns", "value": 1})
    if keep == "all" or keep["type"] == "all":
        return prompt, 0
    thinking = [turn for turn in merge_turns(prompt.blocks) if any(one.kind in THINKING_KINDS for one in turn.blocks)]
    old = thinking[: -keep["value"]]
    cleared = {one.path for turn in old for one in turn.blocks if one.kind in THINKING_KINDS}
    return replace(prompt, blocks=tuple(one for one in prompt.blocks if one.path not in cleared)), len(old)


def _clear_tool_uses(prompt: Prompt, edit: Mapping[str, Any]) -> tuple[Prompt, int]:
    uses = [one.block for one in prompt.blocks if one.kind == "tool_use"]
    trigger = edit.get("trigger", DEFAULT_CLEARING)
    reached = len(uses) if trigger["type"] == "tool_uses" else prompt.tokens
    if reached <= trigger["value"]:
        return prompt, 0
    kept = (edit.get("keep") or {}).get("value", DEFAULT_KEPT)
    old = uses[: len(uses) - kept] if kept < len(uses) else []
    cleared = {block["id"]: block["name"] for block in old if block["name"] not in (edit.get("exclude_tools") or ())}
    inputs = edit.get("clear_tool_inputs") or ()
    edited = replace(prompt, blocks=tuple(_cleared(one, cleared, inputs) for one in prompt.blocks))
    least = (edit.get("clear_at_least") or {}).get("value", 0)
    if not cleared or prompt.tokens - edited.tokens < max(least, 1):
        return prompt, 0
    return edited, len(cleared)


def _cleared(one: Placed, cleared: Mapping[str, str], inputs: Any) -> Placed:
    """Return the block, without its content if it belongs to a cleared tool use."""
    if one.kind == "tool_result" and one.block["tool_use_id"] in cleared:
        return replace(one, block={**one.block, "content": CLEARED})
    if (
        one.kind == "tool_use"
        and one.block["id"] in cleared
        and (inputs is True or one.block["name"] in (inputs or ()))
    ):
        return replace(one, block={**one.block, "input": {}})
    return one
