"""The provider's rules for `thinking` and for returned thinking blocks.

From the pages "Extended thinking", "Thinking" and "Preserved thinking" and from reported 400s, with their wording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.providers.anthropic.models import ModelSpec
from tests.providers.anthropic.prompt import THINKING_KINDS, Placed, Prompt, Turn
from tests.providers.anthropic.refusals import refuse
from tests.providers.anthropic.signing import bindings, thinking_id, thinking_seal

BINDING_BETA = "thinking-binding-controls-2026-08-01"
MIN_BUDGET = 1024


def check_thinking_parameter(body: Mapping[str, Any], model: ModelSpec, betas: frozenset[str]) -> None:
    """Refuse a configuration the model does not have, a bad budget, or thinking with a forced tool."""
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind = thinking["type"]
    if kind not in model.thinking:
        if kind == "enabled":
            use = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
            refuse(f'"thinking.type.enabled" is not supported for this model. {use}')
        refuse(f'"thinking.type.{kind}" is not supported for this model.')
    if thinking.get("block_binding") is not None and BINDING_BETA not in betas:
        refuse(f"thinking.{kind}.block_binding: Extra inputs are not permitted")
    if kind == "enabled":
        if thinking["budget_tokens"] < MIN_BUDGET:
            refuse(f"thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_BUDGET}")
        if thinking["budget_tokens"] >= body.get("max_tokens", thinking["budget_tokens"] + 1):
            refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if kind in ("enabled", "adaptive") and (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        refuse("Thinking may not be enabled when tool_choice forces tool use.")


def check_thinking_signatures(placed: Sequence[Placed]) -> None:
    """Refuse thinking blocks that were edited or never issued, anywhere in the conversation."""
    for one in placed:
        if one.kind == "thinking" and thinking_seal(one.block) is None:
            refuse(f"{one.path}: Invalid `signature` in `thinking` block")
        if one.kind == "redacted_thinking" and thinking_seal(one.block) is None:
            refuse(f"{one.path}: Invalid `data` in `redacted_thinking` block")


def check_running_turn(body: Mapping[str, Any], turns: Sequence[Turn], issued: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a running tool turn in which any of the thinking blocks it began with is missing.

    issued: for each tool use of this server, the ids of the thinking blocks of that reply. `adaptive` thinking requires
    no block at the start ("Adaptive thinking", validation changes).
    """
    if not turns or turns[-1].role != "user" or turns[-1].blocks[0].kind != "tool_result":
        return
    start = len(turns)
    while start >= 2 and turns[start - 1].blocks[0].kind == "tool_result":
        start -= 2
    running = turns[start : len(turns)]
    first = next((one for one in running[0].blocks if one.kind != "compaction"), None)
    enabled = (body.get("thinking") or {}).get("type") == "enabled"
    if enabled and first is not None and first.kind not in THINKING_KINDS:
        text = (
            f"Expected `thinking` or `redacted_thinking`, but found `{first.kind}`. When `thinking` is enabled, a final"
            " `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and"
            " `tool_result` blocks). To avoid this requirement, disable `thinking`."
        )
        refuse(f"{first.path}.type: {text}")
    _check_unmodified(turns[-2], issued)


def _check_unmodified(turn: Turn, issued: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse an assistant turn in which some thinking blocks are missing or reordered.

    A turn without any is a separate case.
    """
    replies = dict.fromkeys(issued[one.block["id"]] for one in turn.blocks if one.block.get("id") in issued)
    expected = [name for reply in replies for name in reply]
    found = [one for one in turn.blocks if one.kind in THINKING_KINDS]
    if found and replies and [thinking_id(one.block) for one in found] != expected:
        text = "blocks in the latest assistant message cannot be modified. These blocks must remain as they were in"
        refuse(f"{found[0].path}: `thinking` or `redacted_thinking` {text} the original response.")


def check_binding(
    body: Mapping[str, Any], prompt: Prompt, model: ModelSpec, betas: frozenset[str]
) -> list[dict[str, str]]:
    """Refuse thinking blocks whose preceding conversation has changed.

    Return the blocks dropped at the request's demand.

    The check is enforced as for a new account. Messages before the last compaction are ignored.
    """
    if not model.binds_thinking:
        return []
    wanted = ((body.get("thinking") or {}).get("block_binding") or {}).get("prefix_mismatch_behavior")
    dropped: list[dict[str, str]] = []
    last = max((k for k, one in enumerate(prompt.blocks) if one.is_summary), default=-1)
    for number, (one, binding) in enumerate(bindings(prompt)):
        if one.kind not in THINKING_KINDS or number < last:
            continue
        seal = thinking_seal(one.block) or {}
        is_bound = seal.get("before") in binding.prefixes and binding.previous in ("", seal.get("previous"))
        if is_bound and not dropped:
            continue
        if wanted == "drop_block":
            dropped.append({"type": "thinking_dropped", "path": one.path, "reason": "prefix_binding_mismatch"})
            continue
        text = (
            "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block,"
            ' or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
        )
        header = f" That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` header."
        refuse(f"{one.path}: {text}{'' if BINDING_BETA in betas else header}")
    return dropped
