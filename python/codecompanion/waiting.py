"""Awaits work that must not be left half done when the caller is cancelled, or that others may stop.

Standard library only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def to_the_end(work: Awaitable[T]) -> T:
    """Return the result of the work; if the caller is cancelled meanwhile, the work still finishes first.

    Use it for a change and its report: either without the other would leave a false entry in the log or the editor
    (lesson 36).

    Raises:
        asyncio.CancelledError: the caller was cancelled; the work has finished nevertheless.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # the caller is being stopped; failed work has undone itself
        raise


async def made_or_undone(work: Awaitable[T], undo: Callable[[T], Awaitable[object]]) -> T:
    """Return the result of the work; if the caller is cancelled meanwhile, the work finishes first and is undone.

    Use it to start a process: asyncio's own cancellation kills only the program, not the processes it has started.
    `undo` receives the result of the work.

    Raises:
        asyncio.CancelledError: the caller was cancelled; the work has been undone.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is None:
            await to_the_end(undo(task.result()))
        raise


async def stoppable(task: asyncio.Task[T], stopped: Exception) -> T:
    """Return the result of a task that others may cancel; cancelling the caller cancels the task.

    Raises:
        Exception: the exception `stopped`, if the task was cancelled from elsewhere.
        asyncio.CancelledError: the caller was cancelled, and the task with it.
    """
    try:
        return await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            task.cancel()
            raise
    raise stopped
