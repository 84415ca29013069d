"""The provider's rules for `context_management`, the `compaction` parameter and compaction blocks.

From the pages "Compaction on demand", "Threshold compaction", "Context editing", from the SDK's `Compaction…Error`
classes, and from measurements by others on the live endpoint: a threshold block is unsigned and needs its beta header
and its edit on every later request; an on-demand block is signed and comes first, alone, under its own beta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.providers.anthropic.models import ModelSpec
from tests.providers.anthropic.prompt import Placed, canonical, merge_turns
from tests.providers.anthropic.refusals import refuse
from tests.providers.anthropic.signing import digest, unsealed

EDIT_BETA = "context-management-2025-06-27"
THRESHOLD_BETA = "compact-2026-01-12"
DEMAND_BETA = "compact-2026-09-04"
THRESHOLD_EDIT = "compact_20260112"
DEFAULT_TRIGGER = 150_000
MIN_TRIGGER = 50_000
MAX_INSTRUCTIONS_LENGTH = 16_384


def edits_of(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the context management edits of a request."""
    return list((body.get("context_management") or {}).get("edits", ()))


def threshold_edit(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the edit that requests threshold compaction."""
    return next((edit for edit in edits_of(body) if edit["type"] == THRESHOLD_EDIT), None)


def check_context_management(body: Mapping[str, Any], model: ModelSpec, betas: frozenset[str]) -> None:
    """Refuse edits that lack their beta header, are in the wrong order, or have a trigger that is too small."""
    if body.get("context_management") is None:
        return
    if not betas & {EDIT_BETA, THRESHOLD_BETA}:
        refuse("context_management: Extra inputs are not permitted")
    thinking = (body.get("thinking") or {}).get("type", "disabled")
    for number, edit in enumerate(edits_of(body)):
        path = f"context_management.edits.{number}"
        match edit["type"]:
            case "compact_20260112":
                if THRESHOLD_BETA not in betas:
                    tags = "'clear_thinking_20251015', 'clear_tool_uses_20250919'"
                    found = f"Input tag '{THRESHOLD_EDIT}' found using 'type'"
                    refuse(f"{path}: {found} does not match any of the expected tags: {tags}")
                if not model.compacts:
                    refuse(f"{model.id} does not support the '{THRESHOLD_EDIT}' context management strategy.")
                if (edit.get("trigger") or {}).get("value", DEFAULT_TRIGGER) < MIN_TRIGGER:
                    refuse(f"{path}.{THRESHOLD_EDIT}: trigger.value must be at least {MIN_TRIGGER}")
            case "clear_thinking_20251015":
                if number:
                    rule = "must be the first strategy in `context_management.edits` when provided"
                    refuse(f"context_management: `clear_thinking_20251015` {rule}")
                keep = edit.get("keep")
                if isinstance(keep, Mapping) and keep.get("value", 1) < 1:
                    refuse(f"{path}.keep.thinking_turns.value: Input should be greater than or equal to 1")
                if thinking not in ("enabled", "adaptive"):
                    refuse("`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive")
    kinds = [edit["type"] for edit in edits_of(body)]
    # The pages do not say what a second edit of a kind would do; the stricter reading is that there is none.
    if len(set(kinds)) < len(kinds):
        refuse("context_management.edits: each strategy can be used once")


def check_compaction_parameter(body: Mapping[str, Any], model: ModelSpec, betas: frozenset[str]) -> None:
    """Refuse an invalid on-demand compaction; the conversation is checked later."""
    parameter = body.get("compaction")
    if parameter is None:
        return
    if DEMAND_BETA not in betas:
        refuse(f"compaction: requires anthropic-beta: {DEMAND_BETA}")
    if not model.compacts:
        refuse(f"compaction: {model.id} does not support compaction")
    if len(parameter.get("instructions") or "") > MAX_INSTRUCTIONS_LENGTH:
        refuse(f"compaction.instructions: String should have at most {MAX_INSTRUCTIONS_LENGTH} characters")
    # An empty list of edits or of stop sequences is a parameter that was sent, too: the stricter reading.
    for name in ("context_management", "stop_sequences"):
        if body.get(name) is not None:
            refuse(f"{name}: cannot be combined with `compaction`")
    if (body.get("output_config") or {}).get("format") is not None:
        refuse("output_config.format: cannot be combined with `compaction`")
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        refuse("tool_choice: type `any` or `tool` cannot be combined with `compaction`")


def check_turn_is_complete(body: Mapping[str, Any], placed: Sequence[Placed]) -> None:
    """Refuse to compact an empty conversation, or one whose last tool call is waiting for its result."""
    if body.get("compaction") is None:
        return
    if not any(one.role in ("user", "assistant") for one in placed):
        refuse("messages: there is nothing to summarize", "compaction_nothing_to_summarize")
    last = merge_turns(placed)[-1]
    if last.role == "assistant" and any(one.kind == "tool_use" for one in last.blocks):
        text = "the last `assistant` turn ends in a tool call without a result; send its results, then compact"
        refuse(f"messages.{last.message}: {text}", "compaction_incomplete_turn")


def check_compaction_blocks(
    body: Mapping[str, Any], placed: Sequence[Placed], betas: frozenset[str], *, encrypted: bool
) -> None:
    """Refuse compaction blocks that are not in the position or form in which the server sent them.

    encrypted: threshold blocks of this server carry `encrypted_content`; a block returned without it has been changed.
    """
    blocks = [one for one in placed if one.kind == "compaction"]
    if not blocks:
        return
    if not betas & {THRESHOLD_BETA, DEMAND_BETA}:
        found = "Input tag 'compaction' found using 'type' does not match any of the expected tags"
        refuse(f"{blocks[0].path}: {found}: 'text', 'image', 'tool_use', 'tool_result', 'thinking', …")
    for one in blocks:
        if one.block.get("content") == "":
            refuse(f"{one.path}.compaction.content: String should have at least 1 character")
    summaries = [one for one in blocks if one.is_summary]
    signed = [one for one in summaries if one.block.get("signature") is not None]
    unsigned = [one for one in summaries if one.block.get("signature") is None]
    if signed:
        _check_signed(body, placed, signed, summaries, betas)
    elif THRESHOLD_BETA not in betas and unsigned:
        text = "a `compaction` block with `content` requires its `signature`: send the block exactly as it was returned"
        refuse(f"{unsigned[0].path}: {text}")
    elif unsigned and threshold_edit(body) is None:
        refuse(f"`compaction` blocks require a `{THRESHOLD_EDIT}` strategy in `context_management.edits`.")
    for one in unsigned:
        _check_unsigned(one, encrypted=encrypted)


def _check_signed(
    body: Mapping[str, Any],
    placed: Sequence[Placed],
    signed: Sequence[Placed],
    summaries: Sequence[Placed],
    betas: frozenset[str],
) -> None:
    one = signed[0]
    if DEMAND_BETA not in betas:
        refuse(f"{one.path}.compaction: `signature` requires anthropic-beta: {DEMAND_BETA}")
    if len(summaries) > 1:
        text = "`messages` holds more than one `compaction` block with content; send only the one returned last"
        refuse(text, "compaction_block_ambiguous")
    if one is not placed[0] or one.role == "system":
        text = "block must be sent first, in place of the messages it summarizes; remove those messages"
        refuse(f"`compaction` {text}", "compaction_block_misplaced")
    if threshold_edit(body) is not None:
        refuse(f"`{THRESHOLD_EDIT}` cannot run on a request that carries a signed `compaction` block")
    seal = unsealed(one.block["signature"])
    if seal is None or "stands_for" not in seal:
        refuse(f"{one.path}: the `signature` of the `compaction` block is invalid", "compaction_signature_invalid")
    if seal["summary"] != digest(one.block["content"]):
        text = "the `content` of the `compaction` block differs from what its `signature` recorded"
        refuse(f"{one.path}: {text}", "compaction_content_mismatch")
    if seal["tool_changes"] != digest(canonical(one.block.get("tool_changes"))):
        text = "the `tool_changes` of the `compaction` block differ from what was returned with it"
        refuse(f"{one.path}: {text}", "compaction_tool_changes_mismatch")


def _check_unsigned(one: Placed, *, encrypted: bool) -> None:
    """Refuse a threshold block that was edited: `encrypted_content` is "to be round-tripped verbatim" (SDK).

    This is stricter than the live endpoint, which was seen to accept an edited threshold summary.
    """
    if one.role != "assistant":
        refuse(f"{one.path}: `compaction` blocks may only be in `assistant` messages", "compaction_block_misplaced")
    given = one.block.get("encrypted_content")
    if given is None and not encrypted:
        return
    seal = unsealed(given)
    if seal is None or seal.get("summary") != digest(one.block["content"]):
        text = "the `compaction` block must be sent back with its `encrypted_content`, unchanged"
        refuse(f"{one.path}: {text}", "compaction_content_mismatch")
