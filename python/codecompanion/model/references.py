"""Keeps references to text in other messages correct: when that text leaves the view, the reference is replaced.

The cause does not matter (an edit, a compaction, the user, an undo), because this is part of projecting the view.
Nothing is logged for it, and the counted, shown and sent text are identical.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.model.messages import Message


def with_true_references(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with each reference whose target is gone replaced (`gone`), and all others restored."""
    if not any(message.references for message in messages):
        return tuple(messages)
    whole = {message.id for message in messages if not (message.edited or message.compacted)}
    return tuple(_true(message, whole) if message.references else message for message in messages)


def lost_references(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the ids of the messages that have references whose target is gone."""
    return tuple(message.id for message in messages if message.references and _is_lost(message))


def _is_lost(message: Message) -> bool:
    references = [one for one in message.references if not one.restores]
    return any(one.gone in message.text and one.text not in message.text for one in references)


def _true(message: Message, whole: set[str]) -> Message:
    content, tokens = message.content, message.tokens
    if not isinstance(content, str):
        return message
    for one in message.references:
        stands = whole.issuperset(one.ids)
        wanted, other = (one.text, one.gone) if stands else (one.gone, one.text)
        if wanted not in content and other in content:
            content = content.replace(other, wanted, 1)
            tokens += -one.more_tokens if stands else one.more_tokens
    if content == message.content:
        return message
    return msgspec.structs.replace(message, content=content, tokens=max(0, tokens) if message.tokens else 0)
