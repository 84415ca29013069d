"""Stores the conversation for a chat's checkpoints by appending the new messages of its view (R-461, R-463).

API keys are hidden and limits applied once per message, when it is written. The whole conversation is rewritten when
the chat is opened, when more keys have become known, and when most of the file is no longer in the view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from codecompanion.context.checkpoints.stored_conversation import write_stored_message
from codecompanion.context.work import Messages
from codecompanion.model import checkpoint as payloads
from codecompanion.model.conversation_lines import lines_of, parts_of
from codecompanion.model.messages import Message, TextPart, ToolCall, with_changes
from codecompanion.session.checkpoint_files.throttle import Throttle
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.files.conversations import Place

Files = Mapping[str, tuple[int, int]]
SPARE_BYTES = 1024 * 1024
"""Number of bytes by which a file may exceed twice the size of the view before it is rewritten."""


class ConversationFile(msgspec.Struct):
    """The stored conversation of one chat. Only one call may run at a time; all calls block."""

    chat_id: str
    files: CheckpointFiles
    redact: Callable[[str], str]
    keys_known: Callable[[], int]
    size: int = 0
    """The size of the view in bytes."""
    _place: Place | None = None
    _written: Messages = ()
    _sizes: dict[str, int] = msgspec.field(default_factory=dict)
    _redacted: dict[str, tuple[Message, Message]] = msgspec.field(default_factory=dict)
    _keys_looked_for: int = 0

    def write(self, messages: Messages, files: Files, fresh_files: Files, throttle: Throttle) -> Place:
        """Store new messages and newly read files; return their place in the conversation file.

        Raises:
            StoreError: the conversation could not be written; everything stored before still exists.
        """
        if self.keys_known() != self._keys_looked_for:
            self._redacted, self._keys_looked_for, self._place = {}, self.keys_known(), None
        place = self._place
        if place is None or place.bytes > 2 * self.size + SPARE_BYTES:
            place, self._written, fresh_files = self.files.begin_conversation(self.chat_id), (), files
            self._sizes.clear()
        parts, kept = parts_of(self._written, messages)

        def encode(message: Message) -> bytes:
            throttle()
            stored = payloads.encode(write_stored_message(self.redacted(message)))
            self._sizes[message.id] = len(stored)
            return stored

        named = {self.redact(path): read for path, read in fresh_files.items()}
        self._place = None  # if the write fails, the next one rewrites everything
        if named or parts != [(0, len(self._written))]:
            place = self.files.append_conversation(self.chat_id, place, lines_of(parts, kept, named, encode))
        self._place = place
        self._take(messages, kept)
        return place

    def _take(self, messages: Messages, kept: int) -> None:
        """Record the stored messages; if the view has only grown, only new messages are processed."""
        if kept and kept == len(self._written):
            self.size += sum(self._sizes[message.id] for message in messages[kept:])
        else:
            here = {message.id for message in messages}
            self._sizes = {id: size for id, size in self._sizes.items() if id in here}
            self._redacted = {id: known for id, known in self._redacted.items() if id in here}
            self.size = sum(self._sizes.values())
        self._written = messages

    def redacted(self, message: Message) -> Message:
        """Return the message with keys hidden; cached, because finding keys makes up most of the cost of a write."""
        known = self._redacted.get(message.id)
        if known is None or known[0] is not message:
            known = message, self._without_keys(message)
            self._redacted[message.id] = known
        return known[1]

    def _without_keys(self, message: Message) -> Message:
        content = message.content
        if isinstance(content, str):
            content = self.redact(content)
        else:
            content = tuple(
                TextPart(self.redact(part.text), part.phase) if isinstance(part, TextPart) else part for part in content
            )
        calls = tuple(ToolCall(call.id, call.name, self.redact(call.arguments)) for call in message.tool_calls)
        if content == message.content and calls == message.tool_calls:
            return message
        return with_changes(message, content=content, tool_calls=calls, tokens=message.tokens)
