"""A chat driven through the real session while its provider keeps changing, and the invariants of every request.

The checks: no provider refuses a request; our own checks and the SDK types accept it; no message is lost or reordered
(`switch_reading.find_loss`); a seal reaches only its own provider (R-542); no request had to be repaired; every turn
ends as its story says.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

from codecompanion.model.messages import Message, TextPart
from codecompanion.session.session import Session
from codecompanion.session.state import State
from codecompanion.wire.events import Compacted, ContextEdited, TurnFinished
from codecompanion.wire.requests import Snapshot
from tests.adapters.switch_provider import Provider, leaks, open_providers
from tests.adapters.switch_reading import ANYTHING, Entry, call_entry, find_loss, read_body
from tests.adapters.switch_story import Step, Story, StoryTools, Turn
from tests.summaries import nine_sections
from tests.unit.session.fakes import Bench, submit

When = Literal["turns", "tools", "streaming"]
"""When the provider changes: between turns; also while tools run; or while each reply is arriving."""
SUMMARY = f"<summary>{nine_sections('the work goes on. ' * 5)}</summary>"
_IS_SUMMARY_REQUEST = ("<conversation>", "write the summary described below")


class SwitchingChat:
    """One chat; `route` lists the providers. Create it, `open` it, `play` turns, then read `problems`."""

    def __init__(self, route: Iterator[str], when: When = "turns") -> None:
        self._route, self._when = route, when
        self._steps: deque[Step] = deque()
        self._told: list[Entry] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._log = _Warnings()
        self._found: list[str] = []
        self._broken: list[Step] = []
        self._unsaid: list[Step] = []
        self._submits = 0
        self.providers: dict[str, Provider] = {}
        self.replies = self.switches = self.summaries = 0
        self.allowed: tuple[str, ...] = ()
        """Substrings of refusals and warnings that this chat provokes on purpose."""
        self.queued: dict[int, str] = {}
        """The message that the user sends while the given reply (counted from 1) arrives."""

    async def open(self, root: Path, providers: dict[str, Provider], story: Story, **settings: Any) -> Session:
        """Begin the chat with the first provider of the route."""
        self.providers = providers
        self._tools = StoryTools(story, self._on_tools)
        chat = {"max_provider_requests_per_turn": -1, **settings}
        first = providers[next(self._route)]
        self.bench = Bench(root, first.adapter, settings=chat, tools={"max_result_chars": 10_000_000})  # type: ignore[arg-type]
        self.bench.services.tools = self._tools.toolbox
        for provider in providers.values():
            self.bench.services.adapters.add(provider.adapter, provider.settings)
        self.session = await self.bench.open()
        return self.session

    async def play(self, story: Story) -> None:
        """Play the turns; the provider changes before each of them except the first."""
        for turn in story:
            if self._submits and self._when != "streaming":
                await self.switch()
            await self.play_turn(turn)

    async def play_turn(self, turn: Turn) -> None:
        """Play one turn; after a reply without calls, the next reply is requested with `/continue`."""
        self._unsaid += self._steps
        self._steps = deque(turn.steps)
        for message in turn.attached:
            await self.session.attach(message)
            self._hear(message)
        self._hear(Message(id="", role="user", content=turn.words))
        self._submits += 1
        self.session.submit(submit(turn.words, self._submits))
        await self.idle()
        while self._steps and self.session.log.view.messages[-1].role == "assistant":
            if self._when == "tools":
                await self.switch()
            self.session.continue_reply(Snapshot())
            await self.idle()

    async def answer_again(self, step: Step) -> None:
        """Let the model answer the last message again; its previous answer is removed from the chat."""
        last = max(k for k, entry in enumerate(self._told) if entry[0] == "user")
        del self._told[last + 1 :]
        self._steps = deque([step])
        await self.session.regenerate(Snapshot())
        await self.idle()

    async def reopen(self) -> None:
        """Continue from the log, as after a restart of the host."""
        reopened = await self.bench.resume()
        assert reopened is not None
        self.session = reopened

    async def switch(self, name: str = "") -> None:
        """Switch to the named provider, or to the next one of the route."""
        provider = self.providers[name or next(self._route)]
        self.switches += provider.name != self.session.adapter_name
        await self.session.use_model(provider.name, provider.kind.model)

    async def idle(self) -> None:
        """Wait until control is back with the user."""
        done = lambda: self.session.state is State.IDLE and self.session.task is None  # noqa: E731
        before = len(self._broken)
        await self.bench.until(done)
        for step in self._broken[before:]:
            self._hear_what_is_left(step)
        await asyncio.gather(*self._tasks)
        self._tasks.clear()

    def next_step(self, provider: Provider, body: Mapping[str, Any]) -> Step:
        """Check an accepted request, and return its reply (`switch_provider.Stage`)."""
        asked = _last_words(provider, body)
        if any(words in asked for words in _IS_SUMMARY_REQUEST):
            self.summaries += 1
            return Step(SUMMARY)
        self._compare(provider, body)
        self.replies += 1
        step = self._steps.popleft() if self._steps else Step("Done.")
        self._tell(step)
        if queued := self.queued.pop(self.replies, ""):
            self._submits += 1
            self.session.submit(submit(queued, self._submits))
            self._hear(Message(id="", role="user", content=queued))
        if self._when == "streaming" and step.ending != "failed":
            self._tasks.append(asyncio.get_running_loop().create_task(self.switch()))
        return step

    @property
    def requests(self) -> int:
        """Return the number of requests of any kind."""
        return sum(len(provider.paths) for provider in self.providers.values())

    @property
    def lessons(self) -> int:
        """Return the number of refusals; without bugs, all of them are refusals that an adapter learns from."""
        return sum(len(provider.refusals) for provider in self.providers.values())

    @property
    def edits(self) -> int:
        """Return the number of edits of old tool results."""
        return len(self.bench.of(ContextEdited))

    @property
    def compactions(self) -> list[Compacted]:
        """Return our compactions and the providers'."""
        return self.bench.of(Compacted)

    def problems(self) -> list[str]:
        """Return all problems found; empty if the chat went as planned."""
        found = [*self._found, *self._log.lines, *leaks(self.providers.values()), *map(repr, self.bench.bugs)]
        for provider in self.providers.values():
            lessons = list(provider.kind.lessons)
            for words in provider.refusals:
                known = next((lesson for lesson in lessons if lesson in words), None)
                if known is not None:
                    # An adapter learns a thing once.
                    lessons.remove(known)
                else:
                    found.append(f"{provider.name} refused: {words}")
            found += [f"{provider.name}: {complaint}" for complaint in provider.complaints]
        ends = [event for event in self.bench.of(TurnFinished) if event.reason in ("failed", "stopped")]
        if len(ends) != len(self._broken):
            found.append(f"{len(ends)} turns failed instead of {len(self._broken)}: {[end.error for end in ends]}")
        found += [f"not said: {step!r:.100}" for step in (*self._unsaid, *self._steps)]
        return [line for line in found if not any(re.search(words, line) for words in self.allowed)]

    def close(self) -> None:
        """Stop listening to the log."""
        self._log.close()

    def _hear(self, message: Message) -> None:
        if isinstance(message.content, str):
            self._told.append(("user", message.content))
            return
        for part in message.content:
            self._told.append(("user", part.text) if isinstance(part, TextPart) else ("file",))

    def _hear_what_is_left(self, step: Step) -> None:
        """Record the kept beginning of a reply that broke off, and check that it is marked."""
        last = self.session.log.view.messages[-1]
        if step.ending == "cut":
            if not (last.cut and last.text.strip() and step.text.startswith(last.text)):
                self._found.append(f"of {step.text!r} was kept {last!r:.300}")
            self._told.append(("said", last.text))

    def _tell(self, step: Step) -> None:
        """Record a reply as part of the history; the kept part of one that breaks off is recorded later."""
        if step.ending in ("cut", "failed"):
            self._broken.append(step)
            return
        self._told.append(("said", step.text))
        results = self._tools.expect(step.calls)
        if step.ending == "stopped":
            self._broken.append(step)
            self._tools.stopping, results = True, [None] * len(results)
        calls = [call_entry("", call.name, call.arguments)[2:] for call in step.calls]
        self._told.extend(("call", *call) for call in calls)
        for call, result in zip(calls, results, strict=True):
            self._told.append(("result", *call, ANYTHING if result is None else result))

    def _compare(self, provider: Provider, body: Mapping[str, Any]) -> None:
        reading = read_body(provider.kind.wire, body)
        place = f"request {self.replies} to {provider.name}"
        self._found += [f"{place}: {problem}" for problem in reading.problems]
        if lost := find_loss(reading, self._told):
            self._found.append(f"{place}: {lost}")

    async def _on_tools(self) -> None:
        if self._tools.stopping:
            self._tools.stopping = False
            self.session.cancel()
            await asyncio.Event().wait()
        if self._when == "tools":
            await self.switch()


def round_trip(names: Sequence[str]) -> list[str]:
    """Return a closed walk from every provider to every other one exactly once."""
    left = {name: [other for other in names if other != name] for name in names}
    path, walk = [names[0]], list[str]()
    while path:
        if left[path[-1]]:
            path.append(left[path[-1]].pop())
        else:
            walk.append(path.pop())
    return walk[:-1]


@asynccontextmanager
async def open_chat(
    root: Path,
    route: Sequence[str],
    story: Story,
    when: When = "turns",
    *,
    settings: Mapping[str, Any] = {},
    **fields: Any,
) -> AsyncIterator[SwitchingChat]:
    """Run a chat along its route; `settings` are the settings of the chat, `fields` those of `open_providers`."""
    chat = SwitchingChat(cycle(route), when)
    try:
        async with open_providers(route, chat, **fields) as providers:
            await chat.open(root, providers, story, **settings)
            yield chat
    finally:
        chat.close()


def _last_words(provider: Provider, body: Mapping[str, Any]) -> str:
    last = body["input" if provider.kind.wire == "responses" else "messages"][-1]
    content = last.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(block.get("text", "")) for block in content)


class _Warnings(logging.Handler):
    """Collects warnings from the adapters and the session: a request that had to be repaired is our bug."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        logging.getLogger("codecompanion").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"logged: {record.getMessage()}")

    def close(self) -> None:
        logging.getLogger("codecompanion").removeHandler(self)
        super().close()
