"""Converts summaries for endpoints that accept a system message only at the start (R-146, pipeline.md 5.6).

Gemini keeps one instruction apart from the messages; chat templates of local models refuse or drop a second system
message. The summary is then sent as a user message, followed by a reply that acknowledges it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codecompanion.model.messages import SUMMARY_TAG, Message, with_changes

PREFIX = "[System context]\n"
ANSWER = "Understood."


def is_summary(message: Message) -> bool:
    """Return whether the message is a summary in the system role."""
    return message.role == "system" and message.tag == SUMMARY_TAG


def summary_as_turn(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages; a summary in the system role becomes a user message and a reply to it.

    If the next message is the model's, that reply is omitted: strict templates refuse consecutive replies.
    """
    for index, message in enumerate(messages):
        if not is_summary(message):
            yield message
            continue
        yield with_changes(message, role="user", content=PREFIX + message.text)
        following = messages[index + 1] if index + 1 < len(messages) else None
        if following is None or following.role != "assistant":
            yield Message(id=f"{message.id}.answer", role="assistant", content=ANSWER)
