"""Tracks the calls in progress on one server: their chats, time limits, and questions to the user.

A server may ask only while one of its calls is in progress. The time limits are paused until the user has answered; a
question is withdrawn when its call ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from codecompanion.mcp.server_types import Refused

_T = TypeVar("_T")
_MIN_LEFT_S = 0.1


class RunningCalls:
    """The calls of one server."""

    def __init__(self) -> None:
        self._chats: list[str] = []
        self._clocks: set[asyncio.Timeout] = set()
        self._questions: set[asyncio.Task[Any]] = set()

    @contextlib.asynccontextmanager
    async def running(self, chat_id: str, limit_s: float) -> AsyncIterator[None]:
        """Track a call for a chat inside the `with` block.

        Raises `TimeoutError` if the server takes longer than `limit_s`.
        """
        self._chats.append(chat_id)
        try:
            async with asyncio.timeout(limit_s) as clock:
                self._clocks.add(clock)
                try:
                    yield
                finally:
                    self._clocks.discard(clock)
        finally:
            self._chats.remove(chat_id)
            if not self._chats:
                for task in self._questions:
                    task.cancel()  # the answer is no longer needed

    async def answer_to(self, question: Coroutine[Any, Any, _T]) -> _T:
        """Return the answer to the server's question.

        Raises:
            Refused: the call is over, or the user declined.
        """
        task = asyncio.get_running_loop().create_task(question)
        self._questions.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._questions.discard(task)
            task.cancel()
        if task.cancelled():
            raise Refused("the call was stopped")
        return task.result()

    @contextlib.contextmanager
    def pause_time_limits(self) -> Iterator[tuple[str, ...]]:
        """Pause the time limits; yield the ids of the chats that have running calls, newest last.

        Raises:
            Refused: no call is running.
        """
        if not self._chats:
            raise Refused("no call of this server is running")
        now = asyncio.get_running_loop().time()
        left = [(clock, (clock.when() or now) - now) for clock in self._clocks]
        for clock, _ in left:
            clock.reschedule(None)
        try:
            yield tuple(self._chats)
        finally:
            now = asyncio.get_running_loop().time()
            for clock, seconds in left:
                if clock in self._clocks:
                    clock.reschedule(now + max(_MIN_LEFT_S, seconds))
