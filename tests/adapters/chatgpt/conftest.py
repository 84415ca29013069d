"""A fake OpenAI on this machine, adapters that use it, and a user with a browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.chatgpt.adapter import ChatGPTAdapter, make_chatgpt
from codecompanion.adapters.chatgpt.stored_login import StoredLogin
from codecompanion.adapters.login_adapter import LoggedIn, LoginPage
from codecompanion.model.messages import Message
from codecompanion.settings import builtin_entry
from tests.adapters.conftest import Outcome, collect, request
from tests.providers.chatgpt.browser import come_back
from tests.providers.chatgpt.server import ChatGPTServer

NOW = 1_800_000_000.0
Browser = Callable[[str], object]


@pytest.fixture
async def openai() -> AsyncIterator[ChatGPTServer]:
    """Return a fake OpenAI with one user who has a plan."""
    async with ChatGPTServer() as server:
        server.sign_in.claims["exp"] = NOW + 3600
        yield server


class Clock:
    """A clock that advances only when a test sets it."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        """Return the seconds since 1970."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock."""
    return Clock()


def entry(openai: ChatGPTServer, **changes: Any) -> AdapterSettings:
    """Return the built-in entry, pointing to this machine's OpenAI."""
    options = {"issuer": openai.base, **changes.pop("options", {})}
    told = {**builtin_entry("chatgpt"), "base_url": openai.url, "max_retries": 0, "options": options, **changes}
    return msgspec.convert(told, AdapterSettings)


class Maker:
    """Creates adapters that share one login folder; `heard` lists the secrets they registered for redaction."""

    def __init__(self, openai: ChatGPTServer, folder: Path, clock: Clock) -> None:
        self.openai, self.folder, self.clock = openai, folder, clock
        self.stored = StoredLogin(folder)
        self.heard: list[str] = []
        self.made: list[ChatGPTAdapter] = []

    def __call__(self, **changes: Any) -> ChatGPTAdapter:
        """Return another adapter."""
        settings = entry(self.openai, **changes)
        adapter = make_chatgpt(settings, {}.__getitem__, self.folder, on_key=self.heard.append, clock=self.clock)
        self.made.append(adapter)
        return adapter

    async def logged_in(self, **changes: Any) -> ChatGPTAdapter:
        """Return a logged-in adapter."""
        adapter = self(**changes)
        await log_in(adapter)
        return adapter


@pytest.fixture
async def make(openai: ChatGPTServer, tmp_path: Path, clock: Clock) -> AsyncIterator[Maker]:
    """Return a maker of adapters, which are closed after the test."""
    maker = Maker(openai, tmp_path / "data", clock)
    yield maker
    for adapter in maker.made:
        await adapter.aclose()


async def log_in(adapter: ChatGPTAdapter, account: str = "", browser: Browser = come_back) -> LoggedIn:
    """Log in; the browser opens the page as soon as it is known. An error in the browser ends the login."""
    opened: list[asyncio.Task[object]] = []

    def show(page: LoginPage) -> None:
        opened.append(asyncio.create_task(asyncio.to_thread(browser, page.url)))
        opened[-1].add_done_callback(lambda task: running.cancel() if task.exception() else None)

    running = asyncio.ensure_future(adapter.login().run(show, account))
    await asyncio.wait([running])
    await asyncio.gather(*opened)
    adapter.forget_login()
    return running.result()


async def ask(adapter: ChatGPTAdapter, *messages: Message, **fields: Any) -> Outcome:
    """Run one request to its end."""
    return await collect(adapter, request(*messages, **{"model": "gpt-6-sol", **fields}))


def sent(openai: ChatGPTServer, path: str = "/v1/responses") -> list[Any]:
    """Return the requests to a path."""
    return [seen for seen in openai.requests if seen.path == path]
