"""Fixtures for chats about projects, closed at the end of a test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.conform.code_chat import CodeChat, open_code_chat


@pytest.fixture
async def code_chat(tmp_path: Path) -> AsyncGenerator[Callable[..., Awaitable[CodeChat]], None]:
    """Yield `open_code_chat` for a folder of this test; each chat has its own project."""
    opened = list[CodeChat]()

    async def open_chat(*files: object, **options: object) -> CodeChat:
        opened.append(await open_code_chat(tmp_path / str(len(opened)), *files, **options))
        return opened[-1]

    yield open_chat
    for chat in opened:
        await chat.index.close()
