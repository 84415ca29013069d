"""The states of a chat and the transitions between them: one enum, one table (architecture.md).

idle → preparing → streaming → running_tools → (preparing …) → idle
with compacting and awaiting_approval where needed, and cancelling from any state except idle.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from codecompanion.errors import InvalidTransition


class State(StrEnum):
    """The current activity of a chat."""

    IDLE = "idle"
    PREPARING = "preparing"
    COMPACTING = "compacting"
    STREAMING = "streaming"
    RUNNING_TOOLS = "running_tools"
    AWAITING_APPROVAL = "awaiting_approval"
    CANCELLING = "cancelling"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.IDLE: frozenset({State.PREPARING, State.COMPACTING}),
    # AWAITING_APPROVAL: if compaction is paused and the request does not fit, it waits for the user.
    State.PREPARING: frozenset(
        {State.COMPACTING, State.STREAMING, State.AWAITING_APPROVAL, State.IDLE, State.CANCELLING}
    ),
    # A provider may compact while it streams its reply, and then continues streaming.
    State.COMPACTING: frozenset({State.PREPARING, State.STREAMING, State.IDLE, State.CANCELLING}),
    State.STREAMING: frozenset({State.RUNNING_TOOLS, State.COMPACTING, State.PREPARING, State.IDLE, State.CANCELLING}),
    State.RUNNING_TOOLS: frozenset({State.AWAITING_APPROVAL, State.PREPARING, State.IDLE, State.CANCELLING}),
    State.AWAITING_APPROVAL: frozenset({State.RUNNING_TOOLS, State.PREPARING, State.IDLE, State.CANCELLING}),
    State.CANCELLING: frozenset({State.IDLE}),
}


def step(current: State, wanted: State) -> State:
    """Return the wanted state if the transition is allowed.

    Raises:
        InvalidTransition: the table does not have this transition. Staying in the same state is always allowed.
    """
    if wanted is current or wanted in TRANSITIONS[current]:
        return wanted
    raise InvalidTransition(f"a chat cannot go from {current} to {wanted}")


class Stop(msgspec.Struct, frozen=True):
    """The end of a turn. `why`: the reason shown to the user, or "" for a normal end."""

    why: str = ""
