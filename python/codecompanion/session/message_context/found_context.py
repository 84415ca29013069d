"""Defines the context found for a message; it is logged in the same commit and reported to the editor once sent."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.model.history import EventPayload, MessageAdded, PolicyEvent
from codecompanion.model.messages import Message
from codecompanion.session.codebase.shown_code import TOLD_EVENT
from codecompanion.wire.events import CodeGathered, EditorContextSent, FileUpdated, Notice, Severity


class Found(msgspec.Struct, frozen=True):
    """The events logged before a message, and the events for the editor once the message is sent."""

    payloads: tuple[EventPayload, ...] = ()
    told: tuple[FileUpdated | EditorContextSent | CodeGathered | Notice, ...] = ()

    def with_notices(self, chat_id: str, sentences: Sequence[str]) -> Found:
        """Return a copy with added sentences, shown below the message now and whenever the chat is reopened."""
        if not sentences:
            return self
        said = tuple(dict.fromkeys(sentences))
        logged = tuple(PolicyEvent(name=TOLD_EVENT, fields={"text": sentence}) for sentence in said)
        notices = tuple(Notice(chat=chat_id, level=Severity.INFO, text=sentence) for sentence in said)
        return Found((*self.payloads, *logged), (*self.told, *notices))

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return the messages among the logged events."""
        return tuple(payload.message for payload in self.payloads if isinstance(payload, MessageAdded))

    def and_then(self, other: Found) -> Found:
        """Return this context followed by `other`."""
        return Found((*self.payloads, *other.payloads), (*self.told, *other.told))


class Preceding(msgspec.Struct, frozen=True):
    """The context found for a message before code is gathered, and its token count.

    `written`: the editor mentions, spelled as in the message.
    """

    written: frozenset[str] = frozenset()
    tokens: int = 0
    messages: tuple[Message, ...] = ()


NOTHING, NOTHING_PRECEDING = Found(), Preceding()
