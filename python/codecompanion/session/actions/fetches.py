"""Tracks the running fetches of a chat: the user can stop them, and they stop with the chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from codecompanion.errors import InputError
from codecompanion.waiting import stoppable


class Fetches:
    """The running fetches of one chat."""

    def __init__(self) -> None:
        self._running = set[asyncio.Task[str]]()

    async def run(self, work: Callable[[], Coroutine[Any, Any, str]]) -> str:
        """Run the fetch and return its result.

        Raises:
            InputError: the fetch was stopped.
        """
        task = asyncio.get_running_loop().create_task(work())
        self._running.add(task)
        try:
            return await stoppable(task, InputError("Stopped; nothing was attached."))
        finally:
            self._running.discard(task)

    def stop(self) -> None:
        """Stop all fetches."""
        for task in self._running:
            task.cancel()
