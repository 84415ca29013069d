"""What the running question points back to: as new as that question, wherever it stands (issue 11).

A question whose code, or editor context, still stood above names it and does not send it again. Editing that clears it
during the same turn would take it from the question that it was chosen for.
"""

from __future__ import annotations

from itertools import takewhile

from codecompanion.context.work import Messages
from codecompanion.model.messages import GATHERED_TAG, GatheredPiece, Message


def code_in_use(messages: Messages, cycle: int) -> frozenset[int]:
    """Return the indexes of earlier messages that this cycle names as standing above, wholly or a piece of them."""
    turn = tuple(takewhile(lambda message: message.cycle == cycle or message.cycle is None, reversed(messages)))
    named = [piece for message in turn for piece in message.gathered if piece.is_above]
    same = {m.mentioned.same_as for m in turn if m.mentioned is not None and m.mentioned.same_as}
    if not named and not same:
        return frozenset()
    return frozenset(
        index
        for index, message in enumerate(messages)
        if message.cycle != cycle and (message.id in same or (message.tag == GATHERED_TAG and _has_any(message, named)))
    )


def _has_any(message: Message, named: list[GatheredPiece]) -> bool:
    own = [piece for piece in message.gathered if not piece.is_above]
    return any(_is_of(one, piece) for one in named for piece in own)


def _is_of(one: GatheredPiece, piece: GatheredPiece) -> bool:
    if not one.path:
        return one.source == piece.source
    return one.path == piece.path and piece.start <= one.end and one.start <= piece.end
