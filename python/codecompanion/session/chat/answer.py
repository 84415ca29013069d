"""Passes the result of work that runs as the chat's task to the request that is waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from codecompanion.errors import CodeCompanionError, InputError


class Answer:
    """The result of some work, or its error; `run` is executed as the chat's task."""

    def __init__(self, work: Callable[[], Awaitable[str]]) -> None:
        self._work = work
        self._done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Do the work; an expected error is passed only to the waiting request, any other error also to the chat."""
        try:
            self._done.set_result(await self._work())
        except CodeCompanionError as error:
            self._done.set_exception(error)

    async def after(self, task: asyncio.Task[None] | None) -> str:
        """Wait until the task is over and return the result of the work.

        Raises:
            CodeCompanionError: the work was refused; nothing was changed.
            InputError: the work was stopped, or failed with an error that was reported elsewhere.
        """
        if task is not None:
            await asyncio.wait({task})
        if not self._done.done():
            raise InputError("It was stopped.")
        return self._done.result()
