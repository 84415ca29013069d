"""Pins: messages that no policy may change, and the user's instructions for the whole chat (K8, R-361).

Pure: the module computes the changes made by a pin and the text of a pin.
"""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.errors import InputError
from codecompanion.formats.cutting import cut_line
from codecompanion.model.messages import (
    GATHERED_TAG,
    MEMORY_TAG,
    PIN_TAG,
    RULES_TAG,
    SUMMARY_TAG,
    Message,
    is_typed_by_user,
)
from codecompanion.model.view import View
from codecompanion.session.codebase.shown_code import title_of_gathered
from codecompanion.session.history.restore_message import find

_INTRO = "Follow this for the whole chat:\n\n"
_OF_PROJECT = "The project's `{path}` asks for this for the whole chat; the user's messages come first:\n\n"
TITLE_CHARS = 44


def instruction(text: str, source: str = "") -> str:
    """Return the content of a pinned instruction as sent to the model. `source`: the project file it comes from."""
    return _intro(source) + text.strip()


def _intro(source: str) -> str:
    return _OF_PROJECT.format(path=" ".join(source.replace("`", "'").split())) if source else _INTRO


def title_of(message: Message) -> str:
    """Return a short title of a message, for a list or a sentence."""
    if message.tag == GATHERED_TAG:
        return title_of_gathered(message)
    if message.mentioned is not None:
        return message.mentioned.title or message.mentioned.written
    source = message.path or "" if message.tag == PIN_TAG else ""
    text = message.text.partition("\n\n")[2] if message.tag == PIN_TAG else message.text
    short = cut_line(text.strip() or ", ".join(call.name for call in message.tool_calls), TITLE_CHARS)
    named = f"“{short}”" if short else f"an empty {message.role} message"
    return f"{named} of {' '.join(source.split())}" if source else named


def to_pin(view: View, item: str) -> Message:
    """Return the message of the view to pin; without an id, the newest message of the user or the model.

    Raises:
        InputError: there is no such message, or it is already kept or cannot be pinned.
    """
    message = find(view.messages, item) if item else _newest(view.messages)
    if message is None and item:
        raise InputError("This message is no longer part of the request; restore it first.")
    if message is None:
        raise InputError("Nothing to pin yet: send a message first.")
    if message.tag == MEMORY_TAG:
        raise InputError("The memory is always kept; dd on its line removes it.")
    if message.pinned:
        raise InputError(f"{title_of(message)} is already pinned.")
    if message.tag in (RULES_TAG, SUMMARY_TAG):
        raise InputError("Rules are always kept, and a summary is replaced by the next one; neither can be pinned.")
    if message.edited or message.compacted:
        raise InputError("This message was cleared; restore it before you pin it.")
    return message


def pinned(view: View) -> tuple[Message, ...]:
    """Return the pinned messages in the order in which they are sent."""
    return tuple(message for message in view.messages if message.pinned and message.tag != MEMORY_TAG)


def to_unpin(view: View, item: str, number: int) -> Message:
    """Return the pinned message with this id, or at this position in the list (counted from 1).

    Raises:
        InputError: there is no such pinned message.
    """
    pins = pinned(view)
    if not pins:
        raise InputError("No pins in this chat.")
    if not item and 1 <= number <= len(pins):
        return pins[number - 1]
    found = find(pins, item) if item else None
    if found is None:
        raise InputError(f"No pin has this number; /pins lists them, 1 to {len(pins)}.")
    return found


def _newest(messages: Sequence[Message]) -> Message | None:
    return next((m for m in reversed(messages) if is_typed_by_user(m) or (m.role == "assistant" and m.text)), None)
