"""Work in threads and tasks that nobody waits for any longer than its deadline (R-203)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Event
from typing import TypeVar

from codecompanion.errors import CodeCompanionError

T = TypeVar("T")

MAX_THREADS = 8
"""Threads of their own: one that hangs on a disk takes none of those that the rest of the host works with."""


_working = set[Event]()
"""What threads work on, by the event that stops it."""


class Stopped(Exception):
    """Nobody waits for this any more."""


class DiskDoesNotAnswer(CodeCompanionError):
    """All threads hang in work that nobody waits for any more: what comes now would only wait for its deadline."""

    def __init__(self) -> None:
        super().__init__("the disk does not answer")


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS, "gather")


async def in_thread(work: Callable[[Callable[[], None]], T]) -> T:
    """Return what `work` returns; it calls the function it is given wherever it may stop.

    Cancelled, it does not wait for the thread: a read that hangs must not hold a question up. The thread changes
    nothing, and ends at its next check.

    Raises:
        DiskDoesNotAnswer: no thread has come back from what was stopped before.
    """
    if sum(hung.is_set() for hung in tuple(_working)) >= MAX_THREADS:
        raise DiskDoesNotAnswer
    stop = Event()

    def check() -> None:
        if stop.is_set():
            raise Stopped

    def run() -> T:
        _working.add(stop)
        try:
            return work(check)
        finally:
            _working.discard(stop)

    try:
        return await asyncio.get_running_loop().run_in_executor(_threads(), run)
    except asyncio.CancelledError:
        stop.set()
        raise
