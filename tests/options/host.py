"""A host in this process for one scene: it receives the editor's `hello` and has one chat and a scripted provider."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from codecompanion.engine import log
from codecompanion.engine.runtime import Runtime
from codecompanion.wire import events, requests
from tests.options.desk import Desk, Given
from tests.patience import PATIENCE_S
from tests.providers.chat.answers import reply
from tests.providers.loopback.answers import Answer

LOOP = """{
  adapters = { http = { loop = {
    extends = "openai_compatible",
    env = { url = "URL" },
    schema = { model = { default = "test-model" } },
    opts = { context_window = 128000, alternate_roles = false },
  } } },
  interactions = { chat = { adapter = "loop" } },
  trust = { enabled = false },
}"""
"""Base configuration of every scene with a host."""
_PROPER = Path(__file__).resolve().parents[1] / "mcp" / "proper.py"
_TELLING = Path(__file__).with_name("telling_server.py")
_VARIES = re.compile(
    r"\d{4}-\d\d-\d\d-\d{6}|[0-9a-f]{8,}(?:-[0-9a-f]+)*|\d+(?:\.\d+)? ?m?s\b|\d\d:\d\d(:\d\d)?|127\.0\.0\.1:\d+"
)


class Host:
    """A host that has received `hello`; `told` contains its events."""

    def __init__(self, desk: Desk, root: Path) -> None:
        self.desk, self.root, self.told = desk, root, list[Any]()
        self._asked = 0
        self.decide: Callable[[events.ApprovalRequested], str] = lambda _: "once"
        """The user's decision on an approval request; "" means no answer."""
        self.answer: Callable[[events.Ask], Any] = lambda _: {"files": []}
        """The editor's answer to a request from a tool."""
        self.work = root / "work"
        self.work.mkdir(exist_ok=True)
        self.runtime = Runtime(self._emit)
        self._submits = self.turns = 0
        self._news = asyncio.Event()
        self._tasks = set[asyncio.Task[Any]]()

    async def greet(self, given: Given, **hello: Any) -> None:
        """Send the editor's `hello` request for this configuration."""
        greeting = self.desk.greeting(Given(self._filled(given.base), given.path, self._filled(given.value)))
        for name in ("data_dir", "cache_dir", "state_dir", "config_dir"):
            greeting[name] = str(self.root / name)
        greeting["log_path"] = str(self.root / "log")
        log.open_log(greeting["log_path"], greeting["settings"]["log_level"])  # as the bridge does
        await self.runtime.handle(msgspec.convert(greeting | hello, requests.Hello))

    def _filled(self, text: str) -> str:
        """Insert the provider's URL and the user's configuration folder into a Lua text."""
        url = self.desk.provider.url.removesuffix("/v1")
        text = text.replace("FILL_URL", self.desk.filler.address) if "FILL_URL" in text else text
        text = text.replace("EMBED_URL", self.desk.embedder.url) if "EMBED_URL" in text else text
        text = text.replace("PYTHON", sys.executable).replace("PROPER", str(_PROPER)).replace("TELLING", str(_TELLING))
        return text.replace("URL", url).replace("CONFIG", str(self.root / "config_dir"))

    async def open(self, chat: str = "chat", **fields: Any) -> None:
        """Open a chat."""
        await self.runtime.handle(requests.OpenChat(chat=chat, snapshot=self.snapshot(), **fields))

    def snapshot(self, **fields: Any) -> requests.Snapshot:
        return requests.Snapshot(cwd=str(self.work), **fields)

    async def say(self, text: str, **fields: Any) -> None:
        """Send a message and wait until its turn is over."""
        await self.begin(text, **fields)
        await self.until(lambda: self._over(), "the end of the turn")

    async def begin(self, text: str, **fields: Any) -> None:
        """Send a message without waiting for the end of the turn."""
        self._submits += 1
        self.turns = len(self.of(events.TurnFinished))
        submit = requests.Submit(
            chat="chat",
            submit_id=self._submits,
            text=text,
            key=f"key-{self._submits}",
            snapshot=fields.pop("snapshot", self.snapshot()),
            **fields,
        )
        await self.runtime.handle(submit)

    async def compact(self) -> None:
        """Run the compact command and wait until the chat is idle again."""
        ends = (events.Compacted, events.CompactionFailed)
        await self.runtime.handle(requests.Compact(chat="chat"))
        await self.until(lambda: any(map(self.of, ends)), "the end of the compaction")
        await self.until(self.is_idle, "idle")

    def _over(self) -> bool:
        failed = [event for event in self.of(events.SubmitFailed) if event.submit_id == self._submits]
        return len(self.of(events.TurnFinished)) > self.turns or bool(failed)

    async def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until the predicate is true; it is checked after each event."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            left = deadline - time.monotonic()
            assert left > 0, f"waited {PATIENCE_S} s for {what}; told: {self.told[-20:]}"
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]

    def notices(self) -> list[str]:
        """Return the notices to the user, without the parts that differ between runs."""
        texts = [f"{event.level} {event.text}" for event in self.of(events.Notice)]
        return [steady(text) for text in texts]

    def bodies(self) -> list[Any]:
        """Return the bodies of the requests so far."""
        return [
            json.loads(steady(request.body.decode()))
            for request in self.desk.provider.requests
            if request.method == "POST"
        ]

    def headers(self, name: str) -> list[str]:
        """Return this header of each request so far, or "" where it is missing."""
        return [request.headers.get(name, "") for request in self.desk.provider.requests]

    def stored(self) -> list[str]:
        """Return the names of the memories and checkpoints written by the host."""
        files = (path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file())
        told = (_PLACE_IN_LOG.sub(r"\1~", steady(str(path))) for path in files if _KEPT & set(path.parts))
        return sorted(set(told))

    def is_idle(self) -> bool:
        """Return whether the newest state of the chat is idle."""
        states = self.of(events.State)
        return bool(states) and states[-1].state == "idle"

    def _emit(self, event: Any) -> None:
        self.told.append(event)
        self._news.set()
        if isinstance(event, events.ApprovalRequested) and (decision := self.decide(event)):
            approve = requests.Approve(chat=event.chat, call_id=event.call_id, decision=decision)  # type: ignore[arg-type]
            self._soon(self.runtime.handle(approve))
        if isinstance(event, events.Ask) and event.ask_id and (result := self.answer(event)) is not None:
            self._soon(self.runtime.handle(requests.Answer(ask_id=event.ask_id, ok=True, result=result)))

    def _soon(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_KEPT = {"memories", "checkpoints"}
_PLACE_IN_LOG = re.compile(r"(-(?:periodic|pre_compaction|completion)-)\d+")
"""Matches the position in the log in the name of a checkpoint written in the background, which differs between runs."""


def steady(text: str) -> str:
    """Return the text without ids, times and ports."""
    return _VARIES.sub("~", text)


def play(
    desk: Desk,
    given: Given,
    act: Callable[[Host], Coroutine[Any, Any, Any]],
    script: Sequence[Answer | Any] = (),
    prepare: Callable[[Host], None] = lambda _: None,
    *,
    opened: bool = True,
    default: Callable[[Any], Answer | Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Any:
    """Start a new host, open a chat, run `act` and return its result; the provider answers from the script."""
    provider = desk.provider
    provider.script[:] = script
    provider._default = default or (lambda _: reply("ok"))
    provider.requests.clear()
    host = Host(desk, desk.folder("host"))

    async def run() -> Any:
        prepare(host)
        await host.greet(given)
        try:
            if opened:
                await host.open()
            return await act(host)
        finally:
            await host.runtime.aclose()
            log.close_log()

    with patch.dict(os.environ, {"HOME": str(host.root / "home"), **(env or {})}):
        return asyncio.run(run()), host.stored()
