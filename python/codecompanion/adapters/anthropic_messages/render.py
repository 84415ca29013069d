"""Renders a request as the bytes of a Messages body: a pure function of the view, with caching.

The conversation of a chat's last request is kept as a fold (`conversation.py`). The next request is nearly always the
same list with additions, so it adds only the new messages. Every body is checked before it is sent; broken pairs are
repaired, and a body that the API would still refuse is not sent.
"""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import msgspec

from codecompanion.adapters.anthropic_messages.arrange import Arranged, arrange, is_signed, read_blocks
from codecompanion.adapters.anthropic_messages.blocks import (
    MessageRenderer,
    Piece,
    is_empty,
    text_block,
)
from codecompanion.adapters.anthropic_messages.check import check_fields
from codecompanion.adapters.anthropic_messages.conversation import Conversation, ImageLimits
from codecompanion.adapters.anthropic_messages.parameters import Head, add_tools
from codecompanion.adapters.base import ChatRequest
from codecompanion.adapters.openai_chat.render import encode
from codecompanion.adapters.pairing import mend_pairs
from codecompanion.errors import RequestRejected
from codecompanion.model.messages import CompactionPart, Message
from codecompanion.prompts import load

_log = logging.getLogger(__name__)

_CHATS_KEPT = 4


class RenderOptions(msgspec.Struct, frozen=True):
    """Options for rendering a conversation; a conversation cached with other options is not reused.

    think: send thinking. unsigned, signed: the kinds of compaction that can be sent back.
    """

    think: bool
    unsigned: bool
    signed: bool


class Rendered(msgspec.Struct, frozen=True):
    """A conversation and its system prompts. `signed`: whether its compaction is signed, or None if it has none."""

    system: tuple[str, ...]
    conversation: Conversation
    signed: bool | None = None


class _Kept(msgspec.Struct):
    """The last request of a chat. It keeps the messages alive, so that no other objects reuse their Python ids."""

    options: RenderOptions
    messages: list[Message]
    pieces: dict[int, tuple[Message, Piece]]
    rendered: Rendered
    limits: ImageLimits


class BodyRenderer:
    """Renders bodies of one adapter; caches the conversations of a few chats."""

    def __init__(self, name: str, origin: str, renderer: MessageRenderer) -> None:
        self._name, self._origin, self._renderer = name, origin, renderer
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def read(self, request: ChatRequest, options: RenderOptions, *, keep: bool) -> Rendered:
        """Return the conversation of a request; `keep` caches it for the chat's next request.

        Raises:
            RequestRejected: the API would refuse the request, and it cannot be repaired (a bug in this plugin).
        """
        messages = list(request.messages)
        chat = request.chat_id if request.purpose == "chat" else ""
        kept = self._kept.get(chat)
        if keep and kept is not None and kept.options == options and self._extend(kept, messages):
            self._kept.move_to_end(chat)
            return kept.rendered
        arranged = arrange(messages, self._usable(options))
        pieces = dict(kept.pieces) if kept is not None else {}
        rendered, limits = self._fold(arranged, arranged.messages, options, pieces)
        if messages and rendered.conversation.problems:
            return self._mended(arranged, options, rendered)
        if keep and chat:
            alive = {id(message): pieces[id(message)] for message in messages if id(message) in pieces}
            self._kept[chat] = _Kept(options, messages, alive, rendered, limits)
            self._kept.move_to_end(chat)
            while len(self._kept) > _CHATS_KEPT:
                self._kept.popitem(last=False)
        return rendered

    def body(self, head: Head, rendered: Rendered, request: ChatRequest) -> tuple[bytes, ...]:
        """Return the body in chunks.

        Raises:
            RequestRejected: the API would refuse the body, because a configured parameter is invalid.
        """
        conversation = rendered.conversation
        check = conversation.check
        fields = add_tools(head, rendered.system, request.tools, tuple(conversation.called))
        problems = check_fields(
            # A count has no reply limit, so a thinking budget has nothing to fit into.
            {"max_tokens": sys.maxsize, **fields},
            has_calls=check.has_calls,
            starts_with_thinking=conversation.starts_with_thinking,
            signed=bool(rendered.signed),
        )
        if problems:
            where = f"Check adapters.http.{self._name}.parameters."
            raise RequestRejected(f"{self._name}: not sent; the provider would refuse it ({problems[0]}). {where}")
        mark = encode(head.mark) if head.mark is not None else b""
        # Newer models refuse to continue an assistant's text ("prefill"); a server tool continues automatically.
        goes_on = check.role == "assistant" and check.last == "text"
        last = text_block(load("go_on"), "user") if goes_on and "compaction" not in fields else None
        return conversation.between(encode(fields)[:-1] + b',"messages":[', b"]}", mark, last)

    def _extend(self, kept: _Kept, messages: list[Message]) -> bool:
        """Append the new messages to a cached conversation; return False if it must be rebuilt."""
        known = len(kept.messages)
        # List comparison checks identity before equality: 0.1 ms for 10,000 identical objects.
        if not known or messages[:known] != kept.messages:
            return False
        new = messages[known:]
        if any(message.role == "system" or message.compaction is not None for message in new):
            return False
        conversation = kept.rendered.conversation
        for message in new:
            piece = self._renderer.render(message)
            kept.pieces[id(message)] = (message, piece)
            conversation.add(piece)
        kept.messages = messages
        if conversation.problems or conversation.needed_limits != kept.limits:
            # The fold cannot continue after this message: start again, reusing the pieces.
            kept.messages = []
            return False
        return True

    def _fold(
        self,
        arranged: Arranged,
        messages: Sequence[Message],
        options: RenderOptions,
        pieces: dict[int, tuple[Message, Piece]],
    ) -> tuple[Rendered, ImageLimits]:
        limits = ImageLimits()
        while True:
            conversation = Conversation(think=options.think, images=limits)
            conversation.add_first(arranged.compaction)
            for message in messages:
                if id(message) not in pieces:
                    pieces[id(message)] = (message, self._renderer.render(message))
                conversation.add(pieces[id(message)][1])
            if conversation.needed_limits == limits:
                break
            limits = conversation.needed_limits
        signed = any(block.facts.is_signed for block in arranged.compaction) if arranged.compaction else None
        return Rendered(arranged.system, conversation, signed), limits

    def _mended(self, arranged: Arranged, options: RenderOptions, broken: Rendered) -> Rendered:
        """Return the conversation with broken pairs repaired; it is not cached, so each request logs the repair."""
        for problem in broken.conversation.problems:
            _log.warning("request repaired before sending: %s", problem)
        rendered, _ = self._fold(arranged, mend_pairs(arranged.messages, is_empty), options, {})
        problems = rendered.conversation.problems
        if problems:
            raise RequestRejected(
                f"{self._name}: not sent; the provider would refuse it ({problems[0]}). The chat is unchanged;"
                " please report this bug."
            )
        return rendered

    def _usable(self, options: RenderOptions) -> Any:
        def is_usable(part: CompactionPart) -> bool:
            if part.origin != self._origin or not read_blocks(part):
                return False
            return options.signed if is_signed(part) else options.unsigned

        return is_usable
