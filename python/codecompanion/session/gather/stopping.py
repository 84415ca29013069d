"""Work in threads and tasks that nobody waits for any longer than its deadline (R-203)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Event
from typing import TypeVar

T = TypeVar("T")

MAX_THREADS = 8
"""Threads of their own: one that hangs on a disk takes none of those that the rest of the host works with."""


class Stopped(Exception):
    """Nobody waits for this any more."""


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS, "gather")


async def in_thread(work: Callable[[Callable[[], None]], T]) -> T:
    """Return what `work` returns; it calls the function it is given wherever it may stop.

    Cancelled, it does not wait for the thread: a read that hangs must not hold a question up. The thread changes
    nothing, and ends at its next check.
    """
    stop = Event()

    def check() -> None:
        if stop.is_set():
            raise Stopped

    try:
        return await asyncio.get_running_loop().run_in_executor(_threads(), work, check)
    except asyncio.CancelledError:
        stop.set()
        raise
