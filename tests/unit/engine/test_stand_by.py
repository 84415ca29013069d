"""The imports of a host on standby, and their timing (`engine.runtime`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codecompanion import settings
from codecompanion.engine import chats, runtime
from codecompanion.engine.runtime import Runtime
from codecompanion.errors import InputError
from codecompanion.wire.events import Restored
from codecompanion.wire.requests import Hello, OpenChat, Snapshot
from tests.patience import PATIENCE_S


class Opening:
    """Opens stored chats as configured by the test, and counts the steps of the transport's import."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
        self.steps = 0
        self.began, self.shows, self.ends = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.problem: InputError | None = None
        monkeypatch.setattr(runtime, "transport_steps", lambda: [self._step] * steps)
        monkeypatch.setattr(chats, "open_chat", self._open)
        self.host: Any = None

    def _step(self) -> None:
        self.steps += 1

    async def _open(self, services: Any, request: OpenChat) -> None:
        self.began.set()
        await self.shows.wait()
        if self.problem is not None:
            raise self.problem
        services.emit(Restored(chat=request.resume, entries=(), first=True))
        await self.ends.wait()

    async def greet(self, root: Path) -> None:
        """Start a host."""
        self.host = Runtime(lambda event: None)
        folders = {"data_dir": str(root), "cache_dir": str(root), "log_path": str(root / "log")}
        given = settings.defaults()
        given["chat"] |= {"adapter": "openai", "model": "gpt-5.2"}
        await self.host.handle(Hello(settings=given, nvim="0.11", **folders))

    def open(self, resume: str = "chat") -> asyncio.Task[object]:
        """Request a chat, right after the greeting."""
        return asyncio.ensure_future(self.host.handle(OpenChat(chat="chat", resume=resume, snapshot=Snapshot())))


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until the condition, which other tasks fulfil, is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 - a count in a thread
            await asyncio.sleep(0.001)


async def test_a_stored_chat_is_shown_before_the_transport_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both need the interpreter; reading the rest of the log waits for the editor anyway."""
    opening = Opening(monkeypatch, 3)
    await opening.greet(tmp_path)
    asked = opening.open()
    await opening.began.wait()
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert opening.steps == 0
    opening.shows.set()
    await until(lambda: opening.steps == 3)
    assert not asked.done()
    opening.ends.set()
    await asked
    await opening.host.aclose()


async def test_an_import_in_progress_pauses_while_a_stored_chat_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = Opening(monkeypatch, 10_000)
    await opening.greet(tmp_path)
    await until(lambda: opening.steps > 2)
    asked = opening.open()
    await opening.began.wait()
    await asyncio.sleep(0.02)  # a step that has begun ends
    before = opening.steps
    await asyncio.sleep(0.05)
    assert opening.steps == before
    opening.shows.set()
    await until(lambda: opening.steps > before)
    opening.ends.set()
    await asked
    await opening.host.aclose()


@pytest.mark.parametrize("resume", ["", "chat"])
async def test_a_new_chat_and_one_that_cannot_be_opened_block_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: str
) -> None:
    opening = Opening(monkeypatch, 3)
    opening.problem = InputError("No stored chat has this id.") if resume else None
    await opening.greet(tmp_path)
    asked = opening.open(resume)
    if resume:
        opening.shows.set()
        with pytest.raises(InputError):
            await asked
    await until(lambda: opening.steps == 3)
    asked.cancel()
    await asyncio.wait([asked])
    await opening.host.aclose()
