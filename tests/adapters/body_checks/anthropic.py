"""What the Messages API refuses, over a whole body: the product's own checks and what it never has to ask itself.

What only the server can know (whether a signature is genuine, whether a prompt fits) is not checked; with `encrypted`,
what the provider made is compared with what goes back to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codecompanion.adapters.anthropic_messages.block_check import THINKING_KINDS, BlockFacts, read_block
from codecompanion.adapters.anthropic_messages.check import check_fields
from codecompanion.adapters.anthropic_messages.order_check import OrderCheck

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


def _is_signed(body: Mapping[str, Any]) -> bool:
    messages = body.get("messages") or ()
    first = next(iter(_blocks_of(messages[0])), None) if messages else None
    return isinstance(first, Mapping) and first.get("type") == "compaction" and first.get("signature") is not None


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
