"""The answer of a piece of work that runs as the chat's task, for the request that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from codecompanion.errors import CodeCompanionError, InputError


class Answer:
    """What the work returns, or why it did not; `run` is what the chat's task carries out."""

    def __init__(self, work: Callable[[], Awaitable[str]]) -> None:
        self._work = work
        self._done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Do the work; a refusal belongs to who asked, anything else to the chat as well."""
        try:
            self._done.set_result(await self._work())
        except CodeCompanionError as error:
            self._done.set_exception(error)

    async def after(self, task: asyncio.Task[None] | None) -> str:
        """Wait until the task is over and return what the work returned.

        Raises:
            CodeCompanionError: it refused; nothing was changed.
            InputError: it was stopped, or failed in a way that was told elsewhere.
        """
        if task is not None:
            await asyncio.wait({task})
        if not self._done.done():
            raise InputError("It was stopped.")
        return self._done.result()
