"""Builds the `messages` of a body from pieces. It is a fold that only appends, so a request costs only its new pieces.

Neighbouring pieces of one role become one message (R-425). Thinking is sent back all or nothing per turn (lesson 26): a
turn is the model's work since the user's last message; if some of its reasoning is lost or from another origin, none of
it is sent. Call ids that the API does not accept, or that occur twice, are always replaced in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from codecompanion.adapters.alternation import EARLIER_LEFT_OUT
from codecompanion.adapters.anthropic_messages.block_check import THINKING_KINDS
from codecompanion.adapters.anthropic_messages.blocks import Block, Piece, WireRole, text_block
from codecompanion.adapters.anthropic_messages.media import MANY_IMAGES, MAX_IMAGES
from codecompanion.adapters.anthropic_messages.order_check import OrderCheck
from codecompanion.adapters.joined_pieces import CHUNK_BYTES
from codecompanion.adapters.openai_chat.render import encode
from codecompanion.formats.regex import regex

_EARLIER = text_block(EARLIER_LEFT_OUT, "user")
"""User message that precedes the rest of a request that would otherwise begin with the model's message."""
_NO_ID = regex(r"[^a-zA-Z0-9_-]")
_IMAGES_DROPPED_AT_ONCE = 50
_OPENINGS = {role: f'{{"role":"{role}","content":['.encode() for role in ("user", "assistant")}


class ImageLimits(msgspec.Struct, frozen=True):
    """Selects the images to replace with text: the first `skipped` images and, if `many`, also the big ones."""

    skipped: int = 0
    many: bool = False


class Conversation:
    """Collects pieces in order and returns the body. Parts that are final are stored as a few large chunks."""

    def __init__(self, *, think: bool, images: ImageLimits) -> None:
        self.check = OrderCheck()
        self.called: dict[str, None] = {}
        """Names of all called tools, in order."""
        self._turn_first = ""
        """Type of the model's first block in the running turn, or "" before the first."""
        self._think, self._limits = think, images
        self._chunks: list[bytes] = []
        """Each block, with the bytes between it and the previous one."""
        self._full: list[tuple[int, bytes]] = []
        """Full chunks of a body (many joined blocks), each with the number of blocks up to its end."""
        self._ends: tuple[int, int] = (-1, -1)
        """The ends of the user's second-to-last and last messages, as positions in `_chunks`."""
        self._waiting: dict[str, str] = {}
        self._turn: list[Piece] = []
        self._turn_lost = False
        self._turn_thinks = False
        self._images = 0
        self._big_images = 0
        self._mark = self._take_mark()

    @property
    def problems(self) -> list[str]:
        """Return the errors of the messages or their blocks; empty if the conversation can be sent."""
        unanswered = [f"the call {call!r} has no result" for call in self._waiting]
        return [*self.check.problems, *(unanswered or self.check.end_problems())]

    @property
    def starts_with_thinking(self) -> bool | None:
        """Return whether the open tool turn begins with thinking, or None if no tool turn is open."""
        return self._turn_first in THINKING_KINDS if self.check.awaits_reply_to_results else None

    @property
    def needed_limits(self) -> ImageLimits:
        """Return the image limits this conversation needs; it is valid if it was built with them."""
        over = self._images - MAX_IMAGES
        # In steps: leaving out one more image each time would change the prompt's beginning on every request (lesson
        # 22).
        skipped = -(-over // _IMAGES_DROPPED_AT_ONCE) * _IMAGES_DROPPED_AT_ONCE if over > 0 else 0
        return ImageLimits(skipped, self._big_images > 0 and self._images - skipped > MANY_IMAGES)

    def add_first(self, blocks: Iterable[Block]) -> None:
        """Add the provider's compaction, which precedes everything else."""
        for block in blocks:
            self._put("assistant", block, block.head)
        self._mark = self._take_mark()

    def add(self, piece: Piece) -> None:
        """Append a message's blocks."""
        if not piece.blocks:
            if piece.lost_thinking:
                self._drop_thinking()
            return
        if piece.role == "user" and not piece.is_result and self.check.role != "user":
            self._mark = self._take_mark()
            self._turn, self._turn_lost, self._turn_thinks, self._turn_first = [], False, False, ""
        self._turn.append(piece)
        if piece.lost_thinking and not self._turn_lost:
            self._turn.pop()
            self._drop_thinking()
            self._turn.append(piece)
        self._append(piece)

    def between(self, head: bytes, tail: bytes, mark_json: bytes = b"", last: Block | None = None) -> tuple[bytes, ...]:
        """Return the chunks of a body with the blocks between `head` and `tail`.

        `mark_json` is the value of a cache breakpoint. Breakpoints are set after the user's last two messages: the
        earlier one is the last breakpoint of the previous request, so the cache finds that prefix however much was
        added since. `last` is a final block with the user role.
        """
        self._fill()
        start = self._full[-1][0] if self._full else 0
        chunks = self._chunks[start:]
        if mark_json:
            for at in {end - start for end in self._ends if end >= 0}:
                chunks[at] = chunks[at][:-1] + b',"cache_control":' + mark_json + b"}"
        if last is not None:
            chunks.append(self._separator("user") + last.head)
        end = b"]}" if self._chunks or last is not None else b""
        if not self._full:
            return (b"".join((head, *chunks, end, tail)),)
        return (head, *(joined for _, joined in self._full), b"".join((*chunks, end, tail)))

    def _fill(self) -> None:
        """Join the blocks before the earlier breakpoint, which never moves back, into full chunks."""
        start = self._full[-1][0] if self._full else 0
        size = 0
        for at in range(start, self._ends[0]):
            size += len(self._chunks[at])
            if size >= CHUNK_BYTES:
                self._full.append((at + 1, b"".join(self._chunks[start : at + 1])))
                start, size = at + 1, 0

    def _append(self, piece: Piece) -> None:
        if not self._chunks and piece.role == "assistant":
            self._put("user", _EARLIER, _EARLIER.head)
        if self._waiting and not piece.is_result:
            self.check.problems.append(f"a message comes before the result of {', '.join(self._waiting)}")
            self._waiting.clear()
        for block in piece.blocks:
            if block.facts.kind in THINKING_KINDS:
                if not self._think or self._turn_lost:
                    continue
                self._turn_thinks = True
            self._append_block(piece.role, block)

    def _append_block(self, role: WireRole, block: Block) -> None:
        kind = block.facts.kind
        if role == "assistant" and not self._turn_first:
            self._turn_first = kind
        if kind == "tool_use":
            if block.call in self._waiting:
                self.check.problems.append(f"the call id {block.call!r} occurs twice in a message")
            wire_id = self._waiting[block.call] = self._new_id(block.call)
            self.called[block.name] = None
            self._put(role, block, block.head + encode(wire_id) + block.tail, wire_id)
        elif kind == "tool_result":
            wire_id = self._waiting.pop(block.call, "")
            if not wire_id:
                self.check.problems.append(f"the result of {block.call!r} does not follow its call")
            self._put(role, block, block.head + encode(wire_id) + block.tail, wire_id)
        elif block.instead:
            number, self._images = self._images, self._images + 1
            self._big_images += block.is_big
            left_out = number < self._limits.skipped or (self._limits.many and block.is_big)
            self._put(role, _EARLIER if left_out else block, block.instead if left_out else block.head)
        else:
            self._put(role, block, block.head)

    def _put(self, role: WireRole, block: Block, data: bytes, wire_id: str = "") -> None:
        separator = self._separator(role)
        begins = role != self.check.role
        self._chunks.append(separator + data)
        if role == "user":
            at = len(self._chunks) - 1
            self._ends = (self._ends[1], at) if begins else (self._ends[0], at)
        self.check.add(role, block.facts, wire_id)

    def _separator(self, role: WireRole) -> bytes:
        if role == self.check.role:
            return b","
        return (b"]}," if self._chunks else b"") + _OPENINGS[role]

    def _new_id(self, call: str) -> str:
        base = _NO_ID.sub("_", call) or "call"
        candidate, count = base, 1
        while self.check.has_id(candidate):
            count += 1
            candidate = f"{base}_{count}"
        return candidate

    def _drop_thinking(self) -> None:
        """Remove the thinking of the running turn, including the part already added."""
        self._turn_lost = True
        if self._turn_thinks:
            self._restore(self._mark)
            self._turn_first, self._turn_thinks = "", False
            for piece in self._turn:
                self._append(piece)

    def _take_mark(self) -> tuple[Any, ...]:
        numbers = (len(self._chunks), self._ends, dict(self._waiting), self._images, self._big_images)
        return (*numbers, self.check.mark())

    def _restore(self, mark: tuple[Any, ...]) -> None:
        length, self._ends, waiting, self._images, self._big_images, check = mark
        self._waiting = dict(waiting)
        del self._chunks[length:]
        while self._full and self._full[-1][0] > self._ends[0]:
            self._full.pop()
        self.check.restore(check)
