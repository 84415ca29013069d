"""What the Messages API refuses, as a pure check of a whole body: schema, limits, order, breakpoints, thinking.

The renderer runs the parts that grow with the conversation (`block_check.py`, `order_check.py`) on every new block,
`check_fields` on the rest; `check_body` runs them over a whole body. What only the server can know (whether a signature
is genuine, whether a prompt fits) is not checked; with `encrypted`, what the provider made is compared with what goes
back to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codecompanion.adapters.anthropic_messages.block_check import (
    THINKING_KINDS,
    BlockFacts,
    find_text_problem,
    read_block,
)
from codecompanion.adapters.anthropic_messages.order_check import OrderCheck
from codecompanion.adapters.anthropic_messages.parameters import (
    MAX_INSTRUCTIONS_LENGTH,
    SMALLEST_BUDGET,
    SMALLEST_TRIGGER,
)
from codecompanion.formats.regex import regex

MAX_BREAKPOINTS = 4
_KEYS = frozenset(
    [
        *("model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "stop_sequences", "metadata"),
        *("thinking", "output_config", "service_tier", "speed", "context_management", "compaction", "cache_control"),
        *("container", "mcp_servers", "fallbacks", "fallback_credit_token", "thread", "billing_policy", "diagnostics"),
        "inference_geo",
    ]
)
"""Keys of a body; those of blocks are in `block_check.py`. A test compares both with the SDK's types."""
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
_ENCRYPTED_KINDS = THINKING_KINDS | {"compaction"}


def check_body(body: Mapping[str, Any], encrypted: Sequence[Mapping[str, Any]] | None = None) -> list[str]:
    """Return one sentence per violation; empty when the API would take the body.

    encrypted: the thinking and compaction blocks the request is to give back, in order, exactly as they came.
    """
    order = OrderCheck()
    marks = [*_marks(body, "tools"), *_marks(body, "system")]
    blocks: list[tuple[str, BlockFacts]] = []
    found: list[Mapping[str, Any]] = []
    problems: list[str] = []
    for number, message in enumerate(body.get("messages") or ()):
        problems += _check_message(number, message)
        role = str(message.get("role", ""))
        for block in _blocks_of(message):
            facts = read_block(block, role)
            blocks.append((role, facts))
            order.add(role, facts)
            marks += facts.marks
            if facts.kind in _ENCRYPTED_KINDS and not facts.is_noop:
                found.append({name: value for name, value in block.items() if name != "cache_control"})
    problems += [*_check_roles(body.get("messages") or ()), *order.problems, *order.end_problems()]
    if order.role == "assistant" and order.last == "text" and body.get("compaction") is None:
        problems.append("the last words are the model's, which newer models do not go on from")
    if unknown := set(body) - _KEYS:
        problems.append(f"the unknown key {min(unknown)!r}")
    runs = order.awaits_reply_to_results
    starts = (_first_of_running_turn(blocks) in THINKING_KINDS) if runs else None
    problems += check_fields(body, has_calls=order.has_calls, starts_with_thinking=starts, signed=_is_signed(body))
    problems += _check_breakpoints(body, marks, blocks)
    if encrypted is not None and found != [dict(block) for block in encrypted]:
        problems.append("thinking or compaction does not go back as it came")
    return problems


def check_fields(
    fields: Mapping[str, Any], *, has_calls: bool, starts_with_thinking: bool | None, signed: bool
) -> list[str]:
    """Return what is wrong with a body beside its messages; keys that are newer than this plugin are let through.

    starts_with_thinking: whether the running tool turn does, None without one. signed: the messages begin with a
    compaction that was asked for.
    """
    return [
        *_check_head(fields),
        *_check_system(fields),
        *_check_tools(fields, has_calls=has_calls),
        *_check_thinking(fields, starts_with_thinking=starts_with_thinking),
        *_check_context_management(fields, signed=signed),
        *_check_compaction(fields),
    ]


def _check_message(number: int, message: Any) -> Iterator[str]:
    if not isinstance(message, Mapping):
        yield f"message {number} is no object"
        return
    if unknown := set(message) - {"role", "content"}:
        yield f"message {number} has the unknown key {min(unknown)!r}"
    content = message.get("content")
    if not content or not isinstance(content, str | list):
        yield f"message {number} has no content"


def _check_roles(messages: Sequence[Any]) -> Iterator[str]:
    """A system message (newer models) stands after the user's words and before the model's, or at the end."""
    roles = [message.get("role") if isinstance(message, Mapping) else None for message in messages]
    for number, role in enumerate(roles):
        if role not in ("user", "assistant", "system"):
            yield f"message {number} has the role {role!r}"
        elif role == "system" and (
            roles[:number][-1:] != ["user"] or roles[number + 1 :][:1] not in ([], ["assistant"])
        ):
            yield f"message {number} is a system message out of place: it has to follow the user's words"


def _blocks_of(message: Any) -> Sequence[Any]:
    content = message.get("content") if isinstance(message, Mapping) else ()
    if isinstance(content, str):
        return ({"type": "text", "text": content},) if content else ()
    return content if isinstance(content, list) else ()


def _check_head(body: Mapping[str, Any]) -> Iterator[str]:
    if not body.get("model") or not isinstance(body["model"], str):
        yield "there is no model"
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        yield "max_tokens is no positive number"


def _check_system(body: Mapping[str, Any]) -> Iterator[str]:
    system = body.get("system", ())
    for block in system if isinstance(system, list) else ():
        if block.get("type") != "text" or set(block) - {"type", "text", "cache_control", "citations"}:
            yield "the system prompt holds something else than text"
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
                yield f"there is no tool of type {tool['type']!r}"
            continue
        name, schema = tool.get("name"), tool.get("input_schema")
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            yield f"a tool has the name {name!r}, which is not accepted"
        if unknown := set(tool) - _TOOL_KEYS:
            yield f"the tool {name} has the unknown key {min(unknown)!r}"
        if not isinstance(schema, Mapping) or schema.get("type") != "object" or _COMBINATORS & set(schema):
            yield f"the schema of the tool {name} is no plain object"
    choice = body.get("tool_choice")
    if choice is not None and not tools and not body.get("mcp_servers"):
        yield "there is a tool_choice without tools"
    if isinstance(choice, Mapping) and choice.get("type") == "tool" and choice.get("name") not in names:
        yield "tool_choice names a tool that is not there"
    if has_calls and not tools:
        yield "there are calls, but no tools"


def _check_thinking(body: Mapping[str, Any], *, starts_with_thinking: bool | None) -> Iterator[str]:
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping):
        return
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive", "disabled", "between_tools"):
        yield f"there is no thinking of type {kind!r}"
    if kind != "enabled":
        return
    budget, limit = thinking.get("budget_tokens"), body.get("max_tokens")
    if not isinstance(budget, int) or budget < SMALLEST_BUDGET:
        yield f"the budget of thinking is below {SMALLEST_BUDGET}"
    elif isinstance(limit, int) and budget >= limit:
        yield "the budget of thinking is not below max_tokens"
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") in ("any", "tool"):
        yield "thinking with a budget does not go with a forced tool"
    if starts_with_thinking is False:
        yield "the running turn does not begin with thinking"


def _first_of_running_turn(blocks: Sequence[tuple[str, BlockFacts]]) -> str:
    """Return the kind of the model's first block since the user's last words, a compaction aside."""
    first, last_role, begins = "", "", False
    for role, facts in blocks:
        if role != last_role:
            begins = role == "assistant" and first == ""
            if role == "user" and facts.kind != "tool_result":
                first = ""
        if begins and facts.kind != "compaction" and not first:
            first = facts.kind
        last_role = role
    return first


def _check_context_management(body: Mapping[str, Any], *, signed: bool) -> Iterator[str]:
    management = body.get("context_management")
    if management is None:
        return
    edits = management.get("edits", ()) if isinstance(management, Mapping) else ()
    kinds = [edit.get("type") for edit in edits]
    if unknown := [kind for kind in kinds if kind not in _EDITS]:
        yield f"there is no edit of type {unknown[0]!r}"
    if len(set(kinds)) < len(kinds):
        yield "an edit occurs twice"
    if "clear_thinking_20251015" in kinds[1:]:
        yield "clear_thinking is not the first edit"
    for edit in edits:
        trigger = edit.get("trigger") or {}
        if edit.get("type") == "compact_20260112" and trigger.get("value", SMALLEST_TRIGGER) < SMALLEST_TRIGGER:
            yield f"the trigger of compaction is below {SMALLEST_TRIGGER}"
    if "compact_20260112" in kinds and signed:
        yield "compaction cannot run after a signed compaction"


def _is_signed(body: Mapping[str, Any]) -> bool:
    messages = body.get("messages") or ()
    first = next(iter(_blocks_of(messages[0])), None) if messages else None
    return isinstance(first, Mapping) and first.get("type") == "compaction" and first.get("signature") is not None


def _check_compaction(body: Mapping[str, Any]) -> Iterator[str]:
    compaction = body.get("compaction")
    if compaction is None:
        return
    if compaction.get("type") != "summarize" or set(compaction) - {"type", "instructions"}:
        yield "the compaction parameter is of an unknown form"
    if len(compaction.get("instructions") or "") > MAX_INSTRUCTIONS_LENGTH:
        yield "the instructions for the compaction are too long"
    for name in ("context_management", "stop_sequences"):
        if body.get(name) is not None:
            yield f"{name} cannot be combined with compaction"
    if (body.get("output_config") or {}).get("format") is not None:
        yield "an output format cannot be combined with compaction"
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        yield "a forced tool cannot be combined with compaction"


def _marks(body: Mapping[str, Any], name: str) -> list[str]:
    blocks = body.get(name, ())
    marked = [block.get("cache_control") for block in (blocks if isinstance(blocks, list) else ())]
    return [str(mark.get("ttl", "5m")) for mark in marked if isinstance(mark, Mapping)]


def _check_breakpoints(
    body: Mapping[str, Any], marks: Sequence[str], blocks: Sequence[tuple[str, BlockFacts]]
) -> Iterator[str]:
    if len(marks) + (body.get("cache_control") is not None) > MAX_BREAKPOINTS:
        yield f"there are more than {MAX_BREAKPOINTS} cache breakpoints"
    if set(marks) - {"5m", "1h"}:
        yield "a cache breakpoint has a lifetime there is not"
    if "5m" in marks and "1h" in marks[marks.index("5m") :]:
        yield "a long cache breakpoint stands after a short one"
    if any(facts.marks and facts.kind in THINKING_KINDS for _, facts in blocks):
        yield "a cache breakpoint stands on thinking"
