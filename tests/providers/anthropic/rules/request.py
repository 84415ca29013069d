"""The rules of the Messages API, as a function from a request to its handling or its error.

THE ORDER of the checks is `check_request`; each group has its own file. The rules are independent of the plugin:
written from the API reference, the provider's pages, the SDK's types and reported 400s. Where those are silent, the
stricter interpretation is used and a comment says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

from tests.providers.anthropic.editing import Plan, plan_request
from tests.providers.anthropic.models import ModelSpec
from tests.providers.anthropic.prompt import Turn, canonical, merge_turns, place_blocks, prompt_of
from tests.providers.anthropic.refusals import refuse
from tests.providers.anthropic.rules.compaction import (
    check_compaction_blocks,
    check_compaction_parameter,
    check_context_management,
    check_turn_is_complete,
)
from tests.providers.anthropic.rules.thinking import (
    check_binding,
    check_running_turn,
    check_thinking_parameter,
    check_thinking_signatures,
)
from tests.providers.anthropic.rules.turns import (
    check_breakpoints,
    check_contents,
    check_images,
    check_pairing,
    check_roles,
    check_tools,
)
from tests.providers.anthropic.signing import digest
from tests.providers.loopback.wire_schemas import schema_problems

MAX_BODY_BYTES = 32 * 1024 * 1024
VERSIONS = ("2026-10-21", "2023-06-01")
"""Request bodies are checked with the SDK's types, which are those of the newest version: sampling parameters no longer
exist.
"""


@dataclass
class Memory:
    """The server's record of its own replies.

    `thinking`: for each tool use, the ids of the thinking blocks of that reply. `paused`: digests of replies that ended
    with `pause_turn` and may be sent back as the last message.
    """

    thinking: dict[str, tuple[str, ...]] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Rulebook:
    """The rules of one server.

    `leading_assistant`: the first message may be an assistant message, as was seen on the live endpoint; older models
    and Bedrock refuse it. `encrypted`: threshold blocks carry `encrypted_content`.
    """

    models: tuple[ModelSpec, ...]
    key: str
    leading_assistant: bool = True
    encrypted: bool = True


@dataclass(frozen=True)
class Checked:
    """An accepted request."""

    body: Mapping[str, Any]
    model: ModelSpec
    betas: frozenset[str]
    plan: Plan
    transformations: tuple[dict[str, str], ...] = ()


def check_headers(rules: Rulebook, headers: Mapping[str, str]) -> frozenset[str]:
    """Return the beta headers of a request; refuse a request without a key or version, or with an unknown beta."""
    # The SDK sends a key as a bearer token since 2.0; both ways are accepted.
    given = headers.get("x-api-key", "") or headers.get("authorization", "").removeprefix("Bearer").strip()
    if rules.key and not given:
        refuse("x-api-key header is required", status=401)
    if rules.key and given != rules.key:
        refuse("invalid x-api-key", status=401)
    version = headers.get("anthropic-version")
    if version is None:
        refuse("anthropic-version: header is required")
    if version not in VERSIONS:
        refuse(f'anthropic-version: "{version}" is not a valid version')
    betas = frozenset(name.strip() for name in headers.get("anthropic-beta", "").split(",") if name.strip())
    unknown = sorted(betas - _known_betas())
    if unknown:
        text = "Please consult our documentation at platform.claude.com/docs or try again without the header."
        refuse(f"Unexpected value(s) `{'`, `'.join(unknown)}` for the `anthropic-beta` header. {text}")
    return betas


def find_model(rules: Rulebook, name: str) -> ModelSpec:
    """Return the model of a request; refuse unknown models."""
    found = next((model for model in rules.models if model.id == name), None)
    return found or refuse(f"model: {name}", status=404)


def check_request(
    rules: Rulebook, memory: Memory, body: Any, betas: frozenset[str], *, counts_only: bool = False
) -> Checked:
    """Return the handling of a request, or refuse it for the first violation in this order.

    Raises: Refused.
    """
    problems = schema_problems("anthropic.count_tokens" if counts_only else "anthropic.messages", body)
    if problems:
        refuse(problems[0])
    model = find_model(rules, body["model"])
    _check_max_tokens(body, model)
    check_thinking_parameter(body, model, betas)
    check_context_management(body, model, betas)
    if not counts_only:  # counting accepts `compaction` and ignores it
        check_compaction_parameter(body, model, betas)
    placed = place_blocks(body["messages"])
    check_breakpoints(body)
    check_compaction_blocks(body, placed, betas, encrypted=rules.encrypted)
    if not counts_only:
        check_turn_is_complete(body, placed)
    check_roles(body, model, leading_assistant=rules.leading_assistant)
    check_contents(body, placed)
    check_tools(body, placed)
    turns = merge_turns(placed)
    check_pairing(turns)
    check_thinking_signatures(placed)
    prompt = prompt_of(body)
    visible = merge_turns(prompt.from_last_summary().blocks)
    check_pairing(visible)
    check_running_turn(body, visible, memory.thinking)
    if not counts_only:
        _check_last_turn(body, turns, model, memory)
    check_images(placed, model)
    dropped = check_binding(body, prompt, model, betas)
    plan = plan_request(body)
    _check_length(body, model, plan, counts_only=counts_only)
    return Checked(body, model, betas, plan, tuple(dropped))


def paused_digest(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return the entry of a reply in `Memory.paused`."""
    return digest(canonical(list(blocks)))


def _check_max_tokens(body: Mapping[str, Any], model: ModelSpec) -> None:
    wanted = body.get("max_tokens", 0)
    if wanted < 0:
        refuse("max_tokens: Input should be greater than or equal to 0")
    if wanted > model.max_output:
        text = f"which is the maximum allowed number of output tokens for {model.id}"
        refuse(f"max_tokens: {wanted} > {model.max_output}, {text}")


def _check_last_turn(body: Mapping[str, Any], turns: Sequence[Turn], model: ModelSpec, memory: Memory) -> None:
    """Refuse a conversation that ends with the assistant, except where the model should continue from there."""
    if body.get("compaction") is not None or body["messages"][-1]["role"] != "assistant":
        return
    last = turns[-1].blocks[-1]
    if turns[-1].role == "assistant":
        tail = [one.block for one in turns[-1].blocks if one.message == turns[-1].message]
        runs_on_server = last.kind.startswith(("server_tool", "mcp_tool")) or last.kind.endswith("_tool_result")
        if last.kind == "compaction" or runs_on_server or paused_digest(tail) in memory.paused:
            return
    if not model.prefill or (body.get("thinking") or {}).get("type") == "enabled":
        text = "This model does not support assistant message prefill. The conversation must end with a user message."
        refuse(text)
    if last.kind == "text" and last.block["text"] != last.block["text"].rstrip():
        refuse("messages: final assistant content cannot end with trailing whitespace")


def _check_length(body: Mapping[str, Any], model: ModelSpec, plan: Plan, *, counts_only: bool) -> None:
    tokens, reply = plan.prompt.tokens, body.get("max_tokens", 0)
    if counts_only:
        return
    if tokens > model.window:
        refuse(f"prompt is too long: {tokens} tokens > {model.window} maximum")
    if model.refuses_overrun and tokens + reply > model.window:
        text = f"input length and `max_tokens` exceed context limit: {tokens} + {reply} > {model.window}"
        refuse(f"{text}, decrease input length or `max_tokens` and try again")


@cache
def _known_betas() -> frozenset[str]:
    """Return the beta headers known to the SDK."""
    from anthropic.types.anthropic_beta_param import AnthropicBetaParam

    return frozenset(value for part in get_args(AnthropicBetaParam) for value in get_args(part))
