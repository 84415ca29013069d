"""Checks the invariants of message lists: tool pairing (R-004) and legal cut points (lesson 25).

Call ids repeat in real histories, so calls and results are paired by position: a result belongs to the newest earlier
call with its id that has no result yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.model.messages import Message

CallPosition = tuple[int, int]
"""Position of a call: (index of the assistant message, index of the call in it)."""


class Pairing(msgspec.Struct, frozen=True):
    """The pairing of results and calls. `orphans`: indexes of results without a call."""

    call_of: dict[int, CallPosition]
    result_of: dict[CallPosition, int]
    unanswered: tuple[CallPosition, ...]
    orphans: tuple[int, ...]


def pair_tool_calls(messages: Sequence[Message]) -> Pairing:
    """Return the pairing of calls and results by position."""
    call_of: dict[int, CallPosition] = {}
    waiting: dict[str, list[CallPosition]] = {}
    orphans: list[int] = []
    for index, message in enumerate(messages):
        for position, call in enumerate(message.tool_calls):
            waiting.setdefault(call.id, []).append((index, position))
        if message.role != "tool":
            continue
        candidates = waiting.get(message.tool_call_id or "")
        if not candidates:
            orphans.append(index)
            continue
        newest = candidates[-1][0]
        first_of_newest = next(k for k, candidate in enumerate(candidates) if candidate[0] == newest)
        call_of[index] = candidates.pop(first_of_newest)
    unanswered = sorted(position for positions in waiting.values() for position in positions)
    return Pairing(call_of, {call: result for result, call in call_of.items()}, tuple(unanswered), tuple(orphans))


def violations(messages: Sequence[Message]) -> list[str]:
    """Return a sentence per violation of R-004; empty if every call and result has its partner."""
    pairing = pair_tool_calls(messages)
    found = [f"result {index} ({messages[index].tool_call_id}) has no call" for index in pairing.orphans]
    for index, position in pairing.unanswered:
        found.append(f"call {messages[index].tool_calls[position].id} of message {index} has no result")
    return found


def with_partners(messages: Sequence[Message], kept: frozenset[int]) -> frozenset[int]:
    """Return the kept indexes, extended so that every kept call or result has its partner."""
    pairing = pair_tool_calls(messages)
    results: dict[int, list[int]] = {}
    for result, (assistant, _) in pairing.call_of.items():
        results.setdefault(assistant, []).append(result)
    grown = set(kept)
    grown.update(pairing.call_of[index][0] for index in kept if index in pairing.call_of)
    for index in tuple(grown):
        grown.update(results.get(index, ()))
    return frozenset(grown)
