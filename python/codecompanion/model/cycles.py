"""Assigns cycles (R-002, R-508…R-510): a cycle is one user turn and everything the model did in response.

A live session records the cycle of every message; for transcripts without cycles they are derived here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codecompanion.model.messages import Message, is_typed_by_user, with_changes


def assign_cycles(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages, each with a cycle; recorded cycles stay and set the counter (R-509).

    Cycles start at 1, and every message that the user typed opens a new one; tagged user messages (summaries, rules,
    attachments) do not.
    """
    assigned: list[Message] = []
    current, opened = 1, False
    for message in messages:
        if message.cycle is not None:
            current, opened = max(current, message.cycle), opened or message.role != "system"
            assigned.append(message)
            continue
        if is_typed_by_user(message):
            current, opened = (current + 1 if opened else current), True
        assigned.append(with_changes(message, cycle=current))
    return tuple(assigned)


def current_cycle(messages: Sequence[Message]) -> int:
    """Return the newest cycle, or 1 for a chat without messages."""
    return max((message.cycle for message in messages if message.cycle is not None), default=1)


def is_aged(cycle: int | None, current: int, keep_cycles: int) -> bool:
    """Return whether a message of `cycle` is older than the kept cycles (R-510, R-512); false if it has no cycle."""
    return cycle is not None and cycle <= current - keep_cycles


def turn_name(cycle: int | None) -> str:
    """Return the name of a turn (a cycle, R-002) for placeholders, summaries and traces."""
    return f"turn-{cycle or 1}"
