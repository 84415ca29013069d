"""What the running question points back to: as new as that question, wherever it stands (issues 11 and 12).

A question whose code, or editor context, still stood above names it and does not send it again. Editing that clears it
during the same turn would take it from the question that it was chosen for. A mention in whose place an attachment is
only named is as good as attached: clearing it would save nothing, as the attachment brings the text itself then.
"""

from __future__ import annotations

from itertools import takewhile

from codecompanion.context.work import Messages


def pointed_at(messages: Messages, cycle: int) -> frozenset[int]:
    """Return the indexes of earlier messages that this cycle names as standing above, wholly or a piece of them."""
    turn = takewhile(lambda message: message.cycle == cycle or message.cycle is None, reversed(messages))
    named = {name for message in turn for one in message.references for name in one.ids}
    earlier = frozenset(i for i, message in enumerate(messages) if message.cycle != cycle and message.id in named)
    return earlier | stands_for_attached(messages)


def stands_for_attached(messages: Messages) -> frozenset[int]:
    """Return the indexes of mentions of one file that an attachment names in place of its text."""
    named = {name for message in messages for one in message.references if one.restores for name in one.ids}
    if not named:
        return frozenset()
    mentions = ((i, m.mentioned) for i, m in enumerate(messages) if m.id in named)
    return frozenset(i for i, mentioned in mentions if mentioned is not None and len(mentioned.paths) == 1)
