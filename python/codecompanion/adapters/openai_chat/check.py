"""Checks a list of messages against the rules of Chat Completions endpoints, and repairs it where that is safe.

The rules are those of `pairing.py`; the caller logs a description of each repair. This module also determines the
position of a message among the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codecompanion.adapters.alternation import Speaker
from codecompanion.adapters.pairing import find_broken_pairs, mend_pairs
from codecompanion.model.messages import DocumentPart, ImagePart, Message, TextPart


def check_request(messages: Sequence[Message]) -> list[str]:
    """Return one sentence per violation, or an empty list if the messages can be sent unchanged.

    An empty reply from the model is not a violation, because it is omitted from the request.
    """
    return find_broken_pairs(messages, lambda message: is_empty(message) and not is_silent(message))


def repair_request(messages: Sequence[Message]) -> list[Message]:
    """Return messages that `check_request` accepts: results moved after their calls, gaps filled, orphans left out."""
    return mend_pairs(messages, is_empty)


def is_silent(message: Message) -> bool:
    """Return whether the message is a reply with nothing to send, such as reasoning alone."""
    return message.role == "assistant" and not message.tool_calls and is_empty(message)


def is_empty(message: Message) -> bool:
    """Return whether the message has nothing to send: no text, only reasoning, or files not from the user."""
    content = message.content
    if isinstance(content, str):
        return not content
    takes_files = message.role == "user"
    return not any(
        (isinstance(part, TextPart) and part.text) or (takes_files and isinstance(part, ImagePart | DocumentPart))
        for part in content
    )


def speaker(message: Message) -> Speaker:
    """Return the role of a message as chat templates see it."""
    return "calls" if message.tool_calls else message.role


def with_place(messages: Sequence[Message]) -> Iterator[tuple[Message, bool]]:
    """Yield each message and whether it directly follows a tool result."""
    behind_result = False
    for message in messages:
        yield message, behind_result
        behind_result = message.role == "tool" or (behind_result and is_silent(message))
