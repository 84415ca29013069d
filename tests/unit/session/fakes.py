"""A chat without editor or network: scripted adapter, real tools, store in memory, collected events."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from codecompanion import settings as settings_module
from codecompanion.adapters.base import (
    AdapterSettings,
    ChatRequest,
    CompactionDone,
    Finished,
    OnWait,
    RetryScheduled,
    StreamEvent,
    TextDelta,
)
from codecompanion.adapters.prompt_slots import Loss
from codecompanion.adapters.registry import AdapterRegistry
from codecompanion.adapters.server_facts import NO_FACTS, ServerFacts
from codecompanion.adapters.speed import NO_SPEED, Speed
from codecompanion.counting import tokens
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.model.messages import ToolCall, Usage
from codecompanion.session.services import Services
from codecompanion.session.session import Session
from codecompanion.session.state import State
from codecompanion.session.storage.open_chat import open_new
from codecompanion.session.storage.open_stored import open_stored
from codecompanion.store.opening import open_memory_store
from codecompanion.store.store import Store
from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.tools.tool_provider import GivenTools
from codecompanion.tools.toolbox import Toolbox
from codecompanion.wire.events import Event
from codecompanion.wire.requests import OpenChat, Snapshot, Submit
from tests.leftovers import closed_at_end
from tests.patience import PATIENCE_S

ALL_TOOLS = {"default_tools": ("full",)}
"""For chats in a small window, which offers few tools until some are chosen."""
Step = StreamEvent | Exception | asyncio.Event
Reply = Sequence[Step]


def says(text: str, usage: Usage | None = None) -> Reply:
    """Return a reply of one text."""
    return (TextDelta(text), Finished("stop", (), usage))


def calls(*wanted: tuple[str, str, str], text: str = "", usage: Usage | None = None) -> Reply:
    """Return a reply that calls tools: (id, name, arguments)."""
    made = tuple(ToolCall(*call) for call in wanted)
    return (*([TextDelta(text)] if text else []), Finished("tool_calls", made, usage))


class ScriptedAdapter:
    """Answers the n-th request with the n-th reply; waits for an `asyncio.Event` in a reply."""

    def __init__(
        self,
        name: str,
        replies: Sequence[Reply] | Callable[[ChatRequest], Reply],
        *,
        native: bool = False,
        compactions: Sequence[CompactionDone | Exception | RetryScheduled] = (),
        counts: Sequence[int | Exception | RetryScheduled] = (),
    ) -> None:
        self.name = self.formatted_name = name
        self.origin = f"scripted@{name}"
        self.returns_readable_reasoning = False
        self.cache_lifetime_s = 300.0
        self._native, self._compactions, self._counts = native, list(compactions), list(counts)
        self.compacted: list[tuple[ChatRequest, str]] = []
        self.counted: list[ChatRequest] = []
        self.default_model = "scripted-1"
        self.told = NO_FACTS
        """The facts that its server reports."""
        self.is_fast = NO_SPEED
        """How fast its server is."""
        self.runs_itself: bool | None = None
        """Whether it reports that it runs its models."""
        self.loses: Loss = ""
        """Why its server has lost the prompt of every chat."""
        self.requests: list[ChatRequest] = []
        self._replies = replies if callable(replies) else None
        self._script = iter(()) if callable(replies) else iter(replies)

    def render(self, request: ChatRequest) -> bytes:
        return b""

    def compacts_natively(self, model: str) -> bool:
        return self._native

    def compacts_on_demand(self, model: str) -> bool:
        return bool(self._compactions)

    def counts_tokens(self, model: str) -> bool:
        return bool(self._counts)

    def limits(self, model: str) -> ModelLimits | None:
        return ModelLimits(self.told.window) if self.told.window else None

    def facts(self, model: str) -> ServerFacts:
        return self.told

    def speed(self, model: str) -> Speed:
        return self.is_fast

    def prompt_loss(self, model: str, chat_id: str) -> Loss:
        return self.loses

    def learn_kept_prompt(self, model: str) -> None:
        self.loses = ""

    def runs_model_itself(self, model: str) -> bool | None:
        return self.runs_itself

    async def know_server(self, model: str) -> None:
        """Report nothing new."""

    async def find_model(self, on_wait: OnWait) -> str:
        return self.default_model

    def forget_tool_refusal(self, model: str) -> None:
        self.told = msgspec.structs.replace(self.told, tools=None, refuses_tools="")

    async def compact(self, request: ChatRequest, instructions: str, on_wait: OnWait | None = None) -> CompactionDone:
        self.compacted.append((request, instructions))
        return await _given(self._compactions, on_wait)

    async def count_tokens(self, request: ChatRequest, on_wait: OnWait | None = None) -> int:
        self.counted.append(request)
        return await _given(self._counts, on_wait)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        for step in self._replies(request) if self._replies else next(self._script):
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, Exception):
                raise step
            else:
                yield step
                await asyncio.sleep(0)

    async def list_models(self) -> list[str]:
        return [self.default_model]

    async def require_key(self) -> None:
        """Require no key."""

    async def warm_up(self) -> None:
        return

    async def aclose(self) -> None:
        return


T = TypeVar("T")


async def _given(script: list[T | Exception | RetryScheduled], on_wait: OnWait | None) -> T:
    """Return the next answer, after reporting each wait for a server that is not ready."""
    while isinstance(answer := script.pop(0), RetryScheduled):
        if on_wait is not None:
            on_wait(answer)
        await asyncio.sleep(0)
    if isinstance(answer, Exception):
        raise answer
    return answer


class Bench:
    """One host's services and the events it sent to the editor."""

    def __init__(
        self,
        root: Path,
        *adapters: ScriptedAdapter,
        window: int = 100_000,
        store: Store | None = None,
        settings: dict[str, Any] | None = None,
        tools: dict[str, Any] | None = None,
        checks_usage: bool = False,
    ) -> None:
        self.root, self.events = root, list[Event]()
        given: dict[str, Any] = {"workspace": {"root": str(root)}, "rules": {"enabled": False}}
        given["tools"] = {"yolo": True, **(tools or {})}
        # The folder in which the tests run is irrelevant to them and to `same_requests`.
        given["chat"] = {"adapter": "offline", "tell_environment": False, **(settings or {})}
        loaded = settings_module.load(given)
        registry = AdapterRegistry(
            {}, read_blob=lambda sha: b"", summarise=lambda messages, limit: "offline summary", secrets={}
        )
        for adapter in adapters:
            registry.add(adapter, AdapterSettings(name=adapter.name, kind="offline", context_window=window))
        self._changed = asyncio.Event()
        numbers = itertools.count(1)
        self.bugs: list[BaseException] = []
        self.store = store or closed_at_end(open_memory_store())
        self.services = Services(
            settings=loaded,
            store=self.store,
            adapters=registry,
            tools=Toolbox([GivenTools("built in", BUILTIN_TOOLS)], loaded.tools.entries),
            emit=self._take,
            clock=lambda: 1000.0,
            lookup=lambda adapter, model: ModelLimits(),
            price=lambda adapter, model, passes: sum(usage.prompt_tokens for usage in passes) / 1e6,
            memory_dir=root / "memories",
            count_text=tokens.estimate_text,
            report_bug=self._take_bug,
            new_token=lambda: f"t{next(numbers)}",
        )
        # Scripts make up their figures; test_lying_usage tests which reports are believed.
        self.services.checks_usage = checks_usage
        self.adapter = adapters[0]

    def _take_bug(self, error: BaseException) -> str:
        self.bugs.append(error)
        return f"an internal error: {error}"

    def _take(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    async def open(self, chat: str = "chat-1") -> Session:
        return await open_new(self.services, OpenChat(chat=chat, snapshot=Snapshot(), adapter=self.adapter.name))

    async def resume(self, chat: str = "chat-1") -> Session | None:
        """Open a stored chat and wait until all of it has been sent to the editor."""
        session = await open_stored(self.services, OpenChat(chat=chat, snapshot=Snapshot(), resume=chat))
        if session is not None and session.older is not None:
            await session.older
        return session

    async def until(self, found: Callable[[], bool], limit_s: float = PATIENCE_S) -> None:
        """Wait until the predicate is true; if it never is, show the events received instead."""
        pause = 0.001
        try:
            async with asyncio.timeout(limit_s):
                while not found():
                    self._changed.clear()
                    # Not everything that can be waited for is an event.
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._changed.wait(), pause)
                    pause = min(2 * pause, 0.008)
        except TimeoutError:
            raise AssertionError(f"waited without success; events: {self.events}; bugs: {self.bugs}") from None

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the events of one type."""
        return [event for event in self.events if isinstance(event, kind)]

    async def idle(self, session: Session) -> None:
        """Wait until control is back with the user."""
        await self.until(lambda: self.is_idle(session))

    def is_idle(self, session: Session) -> bool:
        """Return whether control is back with the user."""
        return session.state is State.IDLE and session.task is None


def submit(text: str, submit_id: int = 1) -> Submit:
    """Return a submit request."""
    return Submit(chat="chat-1", submit_id=submit_id, text=text, snapshot=Snapshot())


__all__ = ["Bench", "RetryScheduled", "ScriptedAdapter", "calls", "says", "submit"]
