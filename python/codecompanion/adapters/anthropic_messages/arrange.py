"""Arranges the messages of a view in a Messages request (pipeline.md 5.6, R-537).

The API's message list contains no system messages and must begin with the user. The block of the provider's own
compaction must precede everything: text before an unsigned block is not read, and a signed block is refused anywhere
else. Protected messages before the block in the view follow it on the wire.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from codecompanion.adapters.anthropic_messages.block_check import read_block
from codecompanion.adapters.anthropic_messages.blocks import Block, tagged
from codecompanion.adapters.openai_chat.render import encode
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import SUMMARY_TAG, CompactionPart, Message, with_changes

_log = logging.getLogger(__name__)

SUMMARY_ELEMENT = "history_summary"


class Arranged(msgspec.Struct, frozen=True):
    """The parts of a request: the `system` text, the blocks of the compaction, and the messages after them."""

    system: tuple[str, ...]
    compaction: tuple[Block, ...]
    messages: tuple[Message, ...]


def arrange(messages: Sequence[Message], is_usable: Callable[[CompactionPart], bool]) -> Arranged:
    """Sort messages into the parts of a request. `is_usable` returns whether a compaction may be sent back."""
    system = [_system_text(message, first=True) for message in messages if message.role == "system"]
    leading = next((k for k, message in enumerate(messages) if message.role != "system"), len(messages))
    system[leading:] = [_system_text(m, first=False) for m in messages[leading:] if m.role == "system"]
    live = max((k for k, m in enumerate(messages) if m.compaction is not None and is_usable(m.compaction)), default=-1)
    rest: list[Message] = []
    blocks: list[Block] = []
    own: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "system":
            continue
        part = message.compaction
        if part is None:
            rest.append(message)
            continue
        others = tuple(other for other in message.content if not isinstance(other, CompactionPart | str))
        if index == live:
            blocks = [_verbatim(block) for block in read_blocks(part)]
            if others:
                # The content after the block in the same message is the reply it was made for.
                (rest if rest else own).append(with_changes(message, content=others))
        elif not is_usable(part):
            rest.extend(_readable(message, part))
    if not blocks and rest and rest[0].role == "assistant" and rest[0].tag == SUMMARY_TAG:
        rest[0] = with_changes(rest[0], role="user", content=tagged(SUMMARY_ELEMENT, rest[0].text))
    return Arranged(tuple(text for text in system if text.strip()), tuple(blocks), (*own, *rest))


def read_blocks(part: CompactionPart) -> list[dict[str, Any]]:
    """Return the blocks of a compaction, or [] if they cannot be read."""
    try:
        return typed.read_json(part.encrypted, type=list[dict[str, Any]])
    except NOT_READABLE:
        return []


def is_signed(part: CompactionPart) -> bool:
    """Return whether the compaction was made on demand: its block is signed, and accepted only at the start (R-540)."""
    return any(block.get("signature") is not None for block in read_blocks(part))


def _verbatim(block: dict[str, Any]) -> Block:
    return Block(read_block(block, "assistant", verbatim=True), encode(block))


def _readable(message: Message, part: CompactionPart) -> list[Message]:
    """Return a compaction that cannot be sent back as a text message; the session normally removes it earlier."""
    _log.warning("a compaction by %s is sent as text: this request cannot include the original block", part.origin)
    if not part.text.strip():
        return []
    return [with_changes(message, role="user", content=tagged(SUMMARY_ELEMENT, part.text))]


def _system_text(message: Message, *, first: bool) -> str:
    """Return the text of a system message, labelled if it is not at the start of the chat (K5)."""
    if first or not message.text.strip():
        return message.text
    return tagged(SUMMARY_ELEMENT if message.tag == SUMMARY_TAG else message.tag or "context", message.text)
