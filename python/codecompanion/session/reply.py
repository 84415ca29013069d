"""One provider request: stream the reply, show it, and make it one message (lessons 38, 39)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from codecompanion.adapters.base import (
    Adapter,
    ChatRequest,
    Finished,
    ReasoningDelta,
    RetryScheduled,
    TextDelta,
    ToolCallStarted,
)
from codecompanion.errors import StreamCut
from codecompanion.events import Event, Reasoning, Retrying, Text
from codecompanion.messages import Content, Part, ReasoningPart, TextPart

PARTIAL_EVERY_S = 1.0


@dataclass(slots=True)
class ReplySoFar:
    """What has arrived of a reply. `finished` stays None until the end marker."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    reasoning_field: str = "reasoning_content"
    finished: Finished | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether nothing worth keeping has arrived."""
        return not "".join(self.text).strip()

    def content(self) -> Content:
        """Return the content of the message: a string, or parts when there was reasoning."""
        text = "".join(self.text)
        if not self.reasoning:
            return text
        parts: list[Part] = [ReasoningPart("".join(self.reasoning), self.reasoning_field)]
        if text:
            parts.append(TextPart(text))
        return tuple(parts)


async def stream_reply(
    adapter: Adapter,
    request: ChatRequest,
    reply: ReplySoFar,
    *,
    emit: Callable[[Event], None],
    on_label: Callable[[str], None],
    save_partial: Callable[[str], None],
    monotonic: Callable[[], float] = time.monotonic,
) -> Finished:
    """Stream one reply into `reply`, which keeps what arrived when this is cancelled or fails.

    Raises:
        AdapterError: the request failed, or the reply ended before its end marker.
    """
    chat, next_save = request.chat_id, monotonic() + PARTIAL_EVERY_S
    async with aclosing(adapter.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta(text=text):
                    if not reply.text:
                        on_label("streaming")
                    reply.text.append(text)
                    emit(Text(chat=chat, text=text))
                case ReasoningDelta(text=text, field=name):
                    if not reply.reasoning:
                        on_label("thinking")
                    reply.reasoning.append(text)
                    reply.reasoning_field = name
                    emit(Reasoning(chat=chat, text=text))
                case ToolCallStarted(name=name):
                    on_label(f"preparing {name}")
                case RetryScheduled(reason=reason, attempt=attempt, wait_ms=wait_ms):
                    emit(Retrying(chat=chat, reason=reason, attempt=attempt, wait_ms=wait_ms))
                case Finished():
                    reply.finished = event
            if monotonic() >= next_save:
                next_save = monotonic() + PARTIAL_EVERY_S
                save_partial("".join(reply.text))
    if reply.finished is None:
        raise StreamCut(f"{adapter.formatted_name}: the reply ended before its end marker")
    return reply.finished
