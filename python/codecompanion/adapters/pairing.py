"""Checks the pairs of calls and results in the messages of a request, and repairs them where that is safe.

Rules common to all providers (violations are answered with 400): every call is answered by exactly one result, and
results directly follow their call (R-004, lesson 25); ids are unique within a message; no message is empty. The wire
format defines when a message is empty. The session keeps its view valid. This is the last check before the bytes are
sent, so a violation is a bug elsewhere, which must not leave the user with an unusable chat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from codecompanion.model.invariants import Pairing, pair_tool_calls
from codecompanion.model.messages import Message, with_changes
from codecompanion.placeholders import INTERRUPTED

IsEmpty: TypeAlias = Callable[[Message], bool]
"""A function that returns whether a message without tool calls would be empty in the wire format."""


def find_broken_pairs(messages: Sequence[Message], is_empty: IsEmpty) -> list[str]:
    """Return one sentence per violation, or an empty list if the messages can be sent unchanged."""
    problems: list[str] = []
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id in waiting:
                waiting.discard(message.tool_call_id)
            else:
                problems.append(f"message {index}: the result of {message.tool_call_id!r} does not follow its call")
            continue
        if waiting:
            problems.append(f"message {index} comes before the result of {', '.join(sorted(waiting))}")
            waiting = set()
        if message.tool_calls:
            waiting = {call.id for call in message.tool_calls}
            if message.role != "assistant":
                problems.append(f"message {index}: role {message.role!r} cannot call tools")
            if len(waiting) < len(message.tool_calls) or "" in waiting:
                problems.append(f"message {index}: its call ids are empty or repeated")
        elif is_empty(message):
            problems.append(f"message {index}: role {message.role!r} has no content")
    if waiting:
        problems.append(f"the last call has no result ({', '.join(sorted(waiting))})")
    return problems


def mend_pairs(messages: Sequence[Message], is_empty: IsEmpty) -> list[Message]:
    """Return messages without broken pairs: results moved after their calls, gaps filled, orphans left out."""
    pairing = pair_tool_calls(messages)
    repaired: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        if message.tool_calls and message.role == "assistant":
            repaired.extend(_call_with_results(index, messages, pairing))
            continue
        if message.tool_calls:
            message = with_changes(message, tool_calls=())
        if not is_empty(message):
            repaired.append(message)
    return repaired


def _call_with_results(index: int, messages: Sequence[Message], pairing: Pairing) -> list[Message]:
    message = messages[index]
    ids = _unique_ids(tuple(call.id for call in message.tool_calls))
    if ids != tuple(call.id for call in message.tool_calls):
        pairs = zip(ids, message.tool_calls, strict=True)
        message = with_changes(message, tool_calls=tuple(msgspec.structs.replace(call, id=new) for new, call in pairs))
    block = [message]
    for position, call_id in enumerate(ids):
        result = pairing.result_of.get((index, position))
        if result is None:
            missing = f"{message.id}:{position}"
            block.append(Message(id=missing, role="tool", content=INTERRUPTED, tool_call_id=call_id, is_error=True))
        elif messages[result].tool_call_id != call_id:
            block.append(with_changes(messages[result], tool_call_id=call_id))
        else:
            block.append(messages[result])
    return block


def _unique_ids(ids: tuple[str, ...]) -> tuple[str, ...]:
    taken: set[str] = set()
    unique: list[str] = []
    for call_id in ids:
        base, candidate, count = call_id or "call", call_id or "call", 1
        while candidate in taken:
            count += 1
            candidate = f"{base}_{count}"
        taken.add(candidate)
        unique.append(candidate)
    return tuple(unique)
