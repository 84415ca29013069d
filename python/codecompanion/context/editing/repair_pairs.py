"""S16 `repair_pairs`: gives every call its result and drops results without a call (R-004, lessons 25, 28, 35)."""

from __future__ import annotations

import msgspec

from codecompanion.context.work import Messages
from codecompanion.model.invariants import pair_tool_calls
from codecompanion.model.messages import Message
from codecompanion.placeholders import INTERRUPTED


class Repair(msgspec.Struct, frozen=True):
    """The repairs: results added for unanswered calls, and dropped results that had no call."""

    messages: Messages
    completed: tuple[Message, ...] = ()
    dropped: tuple[Message, ...] = ()

    @property
    def changed(self) -> bool:
        """Return whether any repair was necessary."""
        return bool(self.completed or self.dropped)


def repair_pairs(messages: Messages) -> Repair:
    """Return the messages with every unanswered call completed by `INTERRUPTED` and every orphaned result dropped.

    The added result follows the last existing result of its assistant message. All other messages stay unchanged; a
    valid list is returned as is.
    """
    pairing = pair_tool_calls(messages)
    if not pairing.unanswered and not pairing.orphans:
        return Repair(messages)
    added: dict[int, list[Message]] = {}
    for index, position in pairing.unanswered:
        assistant = messages[index]
        call = assistant.tool_calls[position]
        result = Message(
            id=f"{assistant.id}.{position}.completed",
            role="tool",
            content=INTERRUPTED,
            tool_call_id=call.id,
            cycle=assistant.cycle,
            turn_id=assistant.turn_id,
            is_error=True,
        )
        added.setdefault(_last_result_behind(messages, index), []).append(result)
    orphans = frozenset(pairing.orphans)
    repaired: list[Message] = []
    for index, message in enumerate(messages):
        if index not in orphans:
            repaired.append(message)
        repaired.extend(added.get(index, ()))
    return Repair(
        tuple(repaired),
        completed=tuple(result for results in added.values() for result in results),
        dropped=tuple(messages[index] for index in pairing.orphans),
    )


def _last_result_behind(messages: Messages, assistant: int) -> int:
    """Return the index of the last tool message directly after the assistant message, or `assistant` if none."""
    last = assistant
    while last + 1 < len(messages) and messages[last + 1].role == "tool":
        last += 1
    return last
