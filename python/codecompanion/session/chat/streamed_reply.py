"""Streams the reply to one provider request, shows it, and turns it into a single message (lessons 38, 39)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from io import StringIO
from typing import assert_never

import msgspec

from codecompanion.adapters.base import (
    Adapter,
    ChatRequest,
    CompactionBegun,
    CompactionDone,
    Finished,
    PromptRead,
    ReasoningDelta,
    ReasoningDone,
    RetryScheduled,
    TextDelta,
    ToolCallStarted,
)
from codecompanion.errors import StreamCut
from codecompanion.model.messages import CallMark, Content, Part, ReasoningPart, TextPart
from codecompanion.session.history.limit_tool_calls import tame
from codecompanion.wire.events import Event, Reasoning, Retrying, Text

SECOND = 1.0
OnCompaction = Callable[[CompactionBegun | CompactionDone], Awaitable[None]]


class _Growing(msgspec.Struct):
    """A text or reasoning part that is still being received; `name` is its phase or wire field."""

    kind: type[TextPart] | type[ReasoningPart]
    name: str
    pieces: StringIO
    origin: str = ""
    encrypted: str = ""

    def part(self, *, with_encrypted: bool) -> Part:
        text = self.pieces.getvalue()
        if self.kind is TextPart:
            return TextPart(text, self.name)
        if with_encrypted:
            return ReasoningPart(text, self.name, self.origin, self.encrypted)
        return ReasoningPart(text, self.name)


class ReplySoFar:
    """The parts of a reply received so far, in order. `finished` stays None until the end marker arrives.

    If plain reasoning and text alternate, they are merged into one part each; encrypted reasoning and tool calls split
    them, because their position matters to the provider when they are sent back to it.
    """

    def __init__(self) -> None:
        self.finished: Finished | None = None
        self._parts: list[_Growing | CallMark] = []
        self._open: dict[tuple[type, str], _Growing] = {}
        self._calls = 0

    def add_text(self, text: str, phase: str = "") -> None:
        """Append a text delta."""
        self._grow(TextPart, phase, text)

    def add_reasoning(self, text: str, field: str) -> None:
        """Append a reasoning delta."""
        self._grow(ReasoningPart, field, text)

    def end_reasoning(self, done: ReasoningDone) -> None:
        """Close the current reasoning block; a block without readable text becomes a separate part."""
        block = next((part for part in self._open.values() if part.kind is ReasoningPart), None)
        if block is None:
            block = _Growing(ReasoningPart, ReasoningPart("").field, StringIO())
            self._parts.append(block)
        block.origin, block.encrypted = done.origin, done.encrypted
        self._open.clear()

    def start_call(self) -> None:
        """Record the position of a tool call."""
        self._parts.append(CallMark(self._calls))
        self._calls += 1
        self._open.clear()

    @property
    def text(self) -> str:
        """Return the text received so far."""
        return "".join(p.pieces.getvalue() for p in self._parts if isinstance(p, _Growing) and p.kind is TextPart)

    @property
    def has_text(self) -> bool:
        """Return whether any text has arrived."""
        return any(isinstance(part, _Growing) and part.kind is TextPart for part in self._parts)

    @property
    def has_reasoning(self) -> bool:
        """Return whether any reasoning has arrived."""
        return any(isinstance(part, _Growing) and part.kind is ReasoningPart for part in self._parts)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing worth storing has arrived."""
        return not self.text.strip()

    @property
    def is_blank(self) -> bool:
        """Return whether there is nothing to show."""
        return not (self.has_text or self.has_reasoning)

    def as_events(self, chat_id: str) -> list[Event]:
        """Return the received parts as the events that showed them."""
        found: list[Event] = []
        for part in self._parts:
            if isinstance(part, _Growing) and (text := part.pieces.getvalue()):
                kind = Text if part.kind is TextPart else Reasoning
                found.append(kind(chat=chat_id, text=text))
        return found

    def content(self) -> Content:
        """Return the content of the message: a string, or parts if there is more than plain text.

        Without an end marker, no encrypted parts are stored, because the parts they belong to may be missing. Trailing
        call marks carry no information and are left out.
        """
        calls = len(self.finished.tool_calls) if self.finished else 0
        parts = [
            part.part(with_encrypted=self.finished is not None) if isinstance(part, _Growing) else part
            for part in self._parts
            if not isinstance(part, CallMark) or part.position < calls
        ]
        while parts and isinstance(parts[-1], CallMark):
            parts.pop()
        if not parts:
            return ""
        if len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].phase:
            return parts[0].text
        return tuple(parts)

    def _grow(self, kind: type[TextPart] | type[ReasoningPart], name: str, text: str) -> None:
        part = self._open.get((kind, name))
        if part is None:
            part = self._open[kind, name] = _Growing(kind, name, StringIO())
            self._parts.append(part)
        part.pieces.write(text)


async def stream_reply(
    adapter: Adapter,
    request: ChatRequest,
    reply: ReplySoFar,
    *,
    emit: Callable[[Event], None],
    on_label: Callable[[str], None],
    on_second: Callable[[str], None],
    on_compaction: OnCompaction,
    on_retry: Callable[[RetryScheduled], None],
    has_estimate: bool = False,
) -> Finished:
    """Stream one reply into `reply`, which keeps the received part if the stream is cancelled or fails.

    `on_second` is called with the text received so far, at most once a second. `has_estimate`: the status shows how
    long the server will read, until it reports that it has read something.

    Raises:
        AdapterError: the request failed, or the reply was incomplete.
    """
    chat, next_second = request.chat_id, time.monotonic() + SECOND
    async with aclosing(adapter.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta(text=text, phase=phase):
                    if not reply.has_text:
                        on_label("streaming")
                    reply.add_text(text, phase)
                    emit(Text(chat=chat, text=text))
                case ReasoningDelta(text=text, field=name):
                    if not reply.has_reasoning:
                        on_label("thinking")
                    reply.add_reasoning(text, name)
                    emit(Reasoning(chat=chat, text=text))
                case ReasoningDone():
                    reply.end_reasoning(event)
                case ToolCallStarted(name=name):
                    reply.start_call()
                    on_label(f"preparing {name}")
                case CompactionBegun() | CompactionDone():
                    await on_compaction(event)
                case PromptRead(tokens=tokens, total=total):
                    from codecompanion.reports.markdown import tokens_text  # only local servers report it

                    if tokens:
                        on_label(f"reading {tokens_text(tokens)} of {tokens_text(total)} tokens")
                    elif not has_estimate:
                        on_label(f"reading {tokens_text(total)} tokens")
                case RetryScheduled():
                    on_retry(event)
                    emit(Retrying(chat=chat, **msgspec.structs.asdict(event)))
                case Finished():
                    reply.finished = tame(event)
                case _:
                    assert_never(event)
            if time.monotonic() >= next_second:
                next_second = time.monotonic() + SECOND
                on_second(reply.text)
    if reply.finished is None:
        raise StreamCut(f"{adapter.formatted_name}: the reply ended before its end marker")
    return reply.finished
