"""Protects content that the running question refers to, because it is as new as the question.

A question whose code or editor context is already in the chat refers to it instead of sending it again. Clearing that
content in the same turn would deprive the question of it. A mention that an attachment refers to counts as attached:
clearing it would save nothing, because the attachment would then include the text.
"""

from __future__ import annotations

from itertools import takewhile

from codecompanion.context.work import Messages


def referenced_indexes(messages: Messages, cycle: int) -> frozenset[int]:
    """Return the indexes of earlier messages that this cycle refers to, in whole or in part."""
    turn = takewhile(lambda message: message.cycle == cycle or message.cycle is None, reversed(messages))
    named = {name for message in turn for one in message.references for name in one.ids}
    earlier = frozenset(i for i, message in enumerate(messages) if message.cycle != cycle and message.id in named)
    return earlier | attached_mentions(messages)


def attached_mentions(messages: Messages) -> frozenset[int]:
    """Return the indexes of single-file mentions that an attachment refers to instead of including the text."""
    named = {name for message in messages for one in message.references if one.restores for name in one.ids}
    if not named:
        return frozenset()
    mentions = ((i, m.mentioned) for i, m in enumerate(messages) if m.id in named)
    return frozenset(i for i, mentioned in mentions if mentioned is not None and len(mentioned.paths) == 1)
