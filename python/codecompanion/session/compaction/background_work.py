"""Runs work in a thread while a summary is written: slowly at first, at full speed once the summary arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from codecompanion.session.checkpoint_files.throttle import Throttle
from codecompanion.waiting import to_the_end


class _Stopped(Exception):
    """Raised in the work when it is no longer needed."""


class BackgroundWork:
    """Background work that starts immediately.

    Between its steps it calls the function passed to it, which may stop it.
    """

    def __init__(self, work: Callable[[Callable[[], None]], None]) -> None:
        self._is_awaited = self._is_stopped = False
        self._throttle = Throttle(lambda: self._is_awaited)
        self._task = asyncio.ensure_future(asyncio.to_thread(self._run, work))

    def _run(self, work: Callable[[Callable[[], None]], None]) -> None:
        try:
            work(self._pause)
        except _Stopped:
            return

    def _pause(self) -> None:
        if self._is_stopped:
            raise _Stopped
        self._throttle()

    async def finish(self) -> None:
        """Run the rest of the work at full speed and wait until it ends."""
        self._is_awaited = True
        await to_the_end(self._task)

    async def stop(self) -> None:
        """Stop the work at its next step, and wait until it ends."""
        self._is_stopped = True
        await self.finish()
