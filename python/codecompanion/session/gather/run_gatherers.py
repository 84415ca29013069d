"""Runs gatherers concurrently: deadlines, failures, durations (R-202, R-203)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import msgspec

from codecompanion.errors import CodeCompanionError

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Runs(msgspec.Struct):
    """Runs gatherers, and records which were late, which failed and why, and how many milliseconds each took."""

    clock: Callable[[], float]
    deadline: float
    timed_out: list[str] = []
    failed: dict[str, str] = {}
    ms: dict[str, int] = {}

    def left(self) -> float:
        """Return the number of seconds left until all work must have ended."""
        return max(0.0, self.deadline - self.clock())

    async def run(self, name: str, work: Awaitable[T], limit_s: float, otherwise: T) -> T:
        """Return the result of `work`, or `otherwise` if it is late or fails; either is recorded.

        Raises:
            asyncio.CancelledError: the entire gathering is being stopped.
        """
        begun = self.clock()
        try:
            async with asyncio.timeout(min(limit_s, self.left())):
                return await work
        except TimeoutError:
            self.timed_out.append(name)
            return otherwise
        except Exception as error:
            self.failed[name] = _reason(error)
            if isinstance(error, CodeCompanionError | OSError):
                _log.info("gathering: %s failed: %s", name, error)
            else:
                _log.exception("gathering: %s failed", name)
            return otherwise
        finally:
            self.ms[name] = int((self.clock() - begun) * 1000)

    async def run_all(self, works: Mapping[str, tuple[Awaitable[T], float]], otherwise: T) -> dict[str, T]:
        """Run all `works` concurrently and return the result of each; cancelling this call cancels all of them."""
        names = list(works)
        found = await asyncio.gather(*(self.run(name, *works[name], otherwise) for name in names))
        return dict(zip(names, found, strict=True))


def _reason(error: BaseException) -> str:
    """Return the reason for a failure to show to the user; for a bug, only its type."""
    if isinstance(error, CodeCompanionError):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return f"internal error ({type(error).__name__}); see the log"
