"""What the running question points back to: as new as that question, wherever it stands (issues 11 and 12).

A question whose code, or editor context, still stood above names it and does not send it again. Editing that clears it
during the same turn would take it from the question that it was chosen for.
"""

from __future__ import annotations

from itertools import takewhile

from codecompanion.context.work import Messages


def pointed_at(messages: Messages, cycle: int) -> frozenset[int]:
    """Return the indexes of earlier messages that this cycle names as standing above, wholly or a piece of them."""
    turn = takewhile(lambda message: message.cycle == cycle or message.cycle is None, reversed(messages))
    named = {name for message in turn for one in message.references for name in one.ids}
    if not named:
        return frozenset()
    return frozenset(i for i, message in enumerate(messages) if message.cycle != cycle and message.id in named)
