"""Runs work in threads that callers do not await beyond a deadline (R-203)."""

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
"""Size of the separate thread pool, which keeps a thread that hangs on a disk from blocking the host's other threads.
"""


_working = set[Event]()
"""The stop events of the work in progress."""


class Stopped(Exception):
    """Raised in the work when its result is no longer needed."""


class DiskDoesNotAnswer(CodeCompanionError):
    """Raised when all threads hang in abandoned work, so that new work would only wait for its deadline."""

    def __init__(self) -> None:
        super().__init__("the disk is not responding")


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS, "gather")


async def in_thread(work: Callable[[Callable[[], None]], T]) -> T:
    """Run `work` in a thread and return its result; `work` calls the function passed to it wherever it may stop.

    On cancellation, this does not wait for the thread, because a hanging read must not delay a question. The thread
    changes nothing, and ends at its next check.

    Raises:
        DiskDoesNotAnswer: all threads are still busy with stopped work.
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
