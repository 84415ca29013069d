"""Shared by the adapter tests: an adapter on a loopback server, with a clock that does not wait."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest

from codecompanion.adapters.base import (
    Adapter,
    AdapterSettings,
    ChatRequest,
    Finished,
    ReasoningDelta,
    RetryScheduled,
    StreamEvent,
    TextDelta,
)
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.openai_chat.render import RenderOptions
from codecompanion.adapters.openai_chat.wire import OpenAIChat
from codecompanion.errors import AdapterError
from codecompanion.model.messages import Message, ToolSpec

WEATHER = ToolSpec("weather", "Tell the weather", {"type": "object", "properties": {"city": {"type": "string"}}})
KEY = "sk-test"


@dataclass
class Outcome:
    """Everything from one request: its events and, if it failed, the error."""

    events: list[StreamEvent] = field(default_factory=list)
    error: AdapterError | None = None

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def retries(self) -> list[RetryScheduled]:
        return [event for event in self.events if isinstance(event, RetryScheduled)]

    @property
    def finished(self) -> Finished:
        assert self.error is None, self.error
        last = self.events[-1]
        assert isinstance(last, Finished), self.events
        assert sum(isinstance(event, Finished) for event in self.events) == 1
        return last


def told(outcome: Outcome) -> list[StreamEvent]:
    """Return the events with adjacent text chunks joined: their number depends on the network."""
    joined: list[StreamEvent] = []
    for event in outcome.events:
        match joined[-1:], event:
            case [TextDelta() as last], TextDelta() if last.phase == event.phase:
                joined[-1] = TextDelta(last.text + event.text, event.phase)
            case [ReasoningDelta() as last], ReasoningDelta() if last.field == event.field:
                joined[-1] = ReasoningDelta(last.text + event.text, event.field)
            case _:
                joined.append(event)
    return joined


def user(text: str = "Hello", number: int = 0) -> Message:
    """Return a user message."""
    return Message(id=f"u{number}", role="user", content=text)


def request(*messages: Message, **fields: Any) -> ChatRequest:
    """Return a request with these messages (by default a greeting)."""
    return ChatRequest(messages=messages or (user(),), **{"model": "test-model", **fields})


async def collect(adapter: Adapter, wanted: ChatRequest | None = None) -> Outcome:
    """Run one request to its end."""
    outcome = Outcome()
    try:
        async with aclosing(adapter.stream(wanted or request())) as events:
            async for event in events:
                outcome.events.append(event)
    except AdapterError as error:
        outcome.error = error
    return outcome


MakeAdapter = Callable[..., HttpAdapter]


@pytest.fixture
async def make_adapter() -> AsyncIterator[MakeAdapter]:
    """Return a maker of adapters, which are closed after the test; their waits take no time and are recorded."""
    made: list[HttpAdapter] = []

    def make(
        url: str,
        *,
        key: str = KEY,
        options: RenderOptions | None = None,
        waits: list[float] | None = None,
        blobs: dict[str, bytes] | None = None,
        sleep: Any = None,
        clock: Callable[[], float] = time.monotonic,
        read_key: Callable[[AdapterSettings], str] | None = None,
        ids: Sequence[str] = (),
        **settings: Any,
    ) -> HttpAdapter:
        recorded = waits if waits is not None else []

        async def no_sleep(seconds: float) -> None:
            recorded.append(seconds)

        remaining = list(ids) or [f"new_{number}" for number in range(100)]
        entry = AdapterSettings(
            **{"name": "test", "kind": "openai_compatible", "base_url": url, "key": "TEST_KEY", **settings}
        )
        read_blob = (blobs or {}).__getitem__
        adapter = HttpAdapter(
            entry,
            OpenAIChat(entry, read_blob, options, lambda: remaining.pop(0)),
            read_key=read_key or (lambda _: key),
            clock=clock,
            sleep=sleep or no_sleep,
            random=lambda: 0.5,
        )
        made.append(adapter)
        return adapter

    yield make
    for adapter in made:
        await adapter.aclose()
