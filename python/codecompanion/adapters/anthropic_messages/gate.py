"""Checks a whole body against the rules of the Messages API: blocks, their order, and the other fields.

Rules that only the server can check (whether a signature is genuine, whether a prompt fits) are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from codecompanion.adapters.anthropic_messages.block_check import THINKING_KINDS, BlockFacts, read_block
from codecompanion.adapters.anthropic_messages.check import check_arguments, check_fields
from codecompanion.adapters.anthropic_messages.order_check import OrderCheck
from codecompanion.adapters.request_gate import BodyJudge

MAX_BREAKPOINTS = 4
_KEYS = frozenset(
    [
        *("model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "stop_sequences", "metadata"),
        *("thinking", "output_config", "service_tier", "speed", "context_management", "compaction", "cache_control"),
        *("container", "mcp_servers", "fallbacks", "fallback_credit_token", "thread", "billing_policy", "diagnostics"),
        "inference_geo",
    ]
)
"""Allowed keys of a body; those of blocks are in `block_check.py`. A test compares both with the SDK's types."""
_OURS = frozenset({"text", "image", "document", "tool_use", "tool_result"})
_ENCRYPTED_KINDS = THINKING_KINDS | {"compaction"}


def check_body(body: Mapping[str, Any], encrypted: Sequence[Mapping[str, Any]] | None = None) -> list[str]:
    """Return one sentence per violation, or an empty list if the API would accept the body.

    encrypted: the thinking and compaction blocks that the request must send back, in order and unchanged.
    """
    judge = MessagesJudge(strict=True)
    messages = body.get("messages") or ()
    for message in messages:
        judge.add(message)
    problems = judge.finish({name: value for name, value in body.items() if name != "messages"})
    if encrypted is not None:
        found = [
            {name: value for name, value in block.items() if name != "cache_control"}
            for message in messages
            for block in _blocks_of(message)
            if _is_encrypted(block)
        ]
        if found != [dict(block) for block in encrypted]:
            problems.append("a thinking or compaction block was changed")
    return problems


class MessagesJudge(BodyJudge):
    """Validates one body.

    strict: also check blocks that the provider created and that are sent back unchanged. configured: the user's
    parameters. is_count: this is a count request, whose body has no reply limit.
    """

    def __init__(self, *, strict: bool, configured: Collection[str] = (), is_count: bool = False) -> None:
        super().__init__()
        self._strict, self._configured, self._is_count = strict, configured, is_count
        self._order = OrderCheck()
        self._count = 0
        self._marks: list[str] = []
        self._is_signed = self._marks_thinking = False
        self._previous: object = None
        """Role of the previous message."""
        self._first, self._block_role, self._begins = "", "", False
        """`_first`: type of the model's first block since the user's last message, except a compaction."""

    def add(self, item: Any) -> None:
        """Validate the next message."""
        number, self._count = self._count, self._count + 1
        self.problems += [f"messages[{number}] {problem}" for problem in _check_message(item)]
        role = item.get("role") if isinstance(item, Mapping) else None
        if role not in ("user", "assistant", "system"):
            self.problems.append(f"messages[{number}] has the unknown role {role!r}")
        if (role == "system" and self._previous != "user") or (self._previous == "system" and role != "assistant"):
            at = number if role == "system" else number - 1
            self.problems.append(f"messages[{at}] is a misplaced system message: it must follow a user message")
        self._previous = role
        for place, block in enumerate(_blocks_of(item)):
            self._take_block(number, place, block, str(role or ""))

    def finish(self, fields: Mapping[str, Any]) -> list[str]:
        """Return all problems of the body."""
        order = self._order
        problems = [*self.problems, *order.end_problems()]
        if order.role == "assistant" and order.last == "text" and fields.get("compaction") is None:
            problems.append("the last message is from the assistant, which newer models do not continue")
        if unknown := set(fields) - _KEYS - set(self._configured):
            problems.append(f"unknown key {min(unknown)!r}")
        starts = self._first in THINKING_KINDS if order.awaits_reply_to_results else None
        limit = {"max_tokens": sys.maxsize} if self._is_count else {}
        problems += check_fields(
            {**limit, **fields}, has_calls=order.has_calls, starts_with_thinking=starts, signed=self._is_signed
        )
        problems += check_arguments({key: fields[key] for key in fields if key not in self._configured})
        marks = [*_marks(fields, "tools"), *_marks(fields, "system"), *self._marks]
        return [*problems, *_check_breakpoints(fields, marks, is_on_thinking=self._marks_thinking)]

    def _take_block(self, number: int, place: int, block: Any, role: str) -> None:
        kind = block.get("type") if isinstance(block, Mapping) else None
        is_providers = role == "assistant" and kind not in _OURS
        facts = read_block(block, role, verbatim=is_providers and not self._strict)
        before = len(self._order.problems)
        self._order.add(role, facts)
        self.problems += [f"messages[{number}], {problem}" for problem in self._order.problems[before:]]
        self._marks += facts.marks
        self._marks_thinking |= bool(facts.marks) and facts.kind in THINKING_KINDS
        if number == place == 0:
            self._is_signed = facts.is_signed
        self._follow_turn(role, facts)

    def _follow_turn(self, role: str, facts: BlockFacts) -> None:
        if role != self._block_role:
            self._begins = role == "assistant" and not self._first
            if role == "user" and facts.kind != "tool_result":
                self._first = ""
        if self._begins and facts.kind != "compaction" and not self._first:
            self._first = facts.kind
        self._block_role = role


def _is_encrypted(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, Mapping) else None
    return kind in _ENCRYPTED_KINDS and not (kind == "compaction" and block.get("content") is None)


def _check_message(message: Any) -> Iterator[str]:
    if not isinstance(message, Mapping):
        yield "is not an object"
        return
    if unknown := set(message) - {"role", "content"}:
        yield f"has the unknown key {min(unknown)!r}"
    content = message.get("content")
    if not content or not isinstance(content, str | list):
        yield "has no content"


def _blocks_of(message: Any) -> Sequence[Any]:
    content = message.get("content") if isinstance(message, Mapping) else ()
    if isinstance(content, str):
        return ({"type": "text", "text": content},) if content else ()
    return content if isinstance(content, list) else ()


def _marks(body: Mapping[str, Any], name: str) -> list[str]:
    blocks = body.get(name, ())
    marked = [block.get("cache_control") for block in (blocks if isinstance(blocks, list) else ())]
    return [str(mark.get("ttl", "5m")) for mark in marked if isinstance(mark, Mapping)]


def _check_breakpoints(body: Mapping[str, Any], marks: Sequence[str], *, is_on_thinking: bool) -> Iterator[str]:
    if len(marks) + (body.get("cache_control") is not None) > MAX_BREAKPOINTS:
        yield f"there are more than {MAX_BREAKPOINTS} cache breakpoints"
    if set(marks) - {"5m", "1h"}:
        yield "a cache breakpoint has an unknown lifetime"
    if "5m" in marks and "1h" in marks[marks.index("5m") :]:
        yield "a 1h cache breakpoint follows a 5m one"
    if is_on_thinking:
        yield "a thinking block has a cache breakpoint"
