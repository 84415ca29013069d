"""Runs the engine's asyncio loop on its own thread, with a guard around everything on it.

pynvim runs its loop on the main thread; all our waiting code (streams, tools, storage) runs here, so the editor always
gets a response. An exception in an asyncio task is silent by default and one in a pynvim handler becomes a hit-enter
prompt; `Guard` turns both into a log line and one notice.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from codecompanion.engine.log import logger, redact
from codecompanion.errors import CodeCompanionError
from codecompanion.wire.events import Event, Notice, Severity

REPEAT_S = 10.0  # the same failure within this time is logged but not shown again
LAST_MOMENT_S = 0.1  # for cancelled tasks to clean up
MAX_THREADS = 64
"""Maximum worker threads. asyncio's default is the number of cores + 4, but threads of cancelled requests may still
wait for DNS or a key command; six of these would block all files, chats and requests on a machine with two cores.
"""
_PASS_THROUGH = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)


def one_sentence(where: str, error: BaseException) -> str:
    """Return a sentence for the user about `error`: its message if it is ours, else the failed operation and the log.

    Registered secrets are redacted.
    """
    if isinstance(error, CodeCompanionError):
        return redact(str(error))
    first_line = str(error).strip().partition("\n")[0]
    name = type(error).__name__
    detail = f"{name}: {first_line}" if first_line else name
    return redact(f"Internal error in {where} ({detail}); see :CodeCompanion log")


class Guard:
    """Wraps every handler, task and thread, so that each exception becomes a log entry and one notice."""

    def __init__(self, emit: Callable[[Event], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._emit, self._clock = emit, clock
        self._shown: dict[str, float] = {}
        self._lock = threading.Lock()

    def report(self, where: str, error: BaseException) -> None:
        """Log `error` with its traceback and notify the user once."""
        logger.error("%s failed", where, exc_info=(type(error), error, error.__traceback__))
        text = one_sentence(where, error)
        now = self._clock()
        with self._lock:
            last = self._shown.get(text)
            self._shown = {known: at for known, at in self._shown.items() if now - at < REPEAT_S}
            if last is not None and now - last < REPEAT_S:
                return
            self._shown[text] = now
        self._emit(Notice(level=Severity.ERROR, text=text))

    @contextmanager
    def watch(self, where: str) -> Iterator[None]:
        """Run the block; report any exception (including a native library's panic) and continue after it."""
        try:
            yield
        except _PASS_THROUGH:
            raise
        except BaseException as error:  # tiktoken panics with a BaseException (lesson 51)
            self.report(where, error)

    def task(self, coroutine: Coroutine[Any, Any, Any], where: str) -> asyncio.Task[None]:
        """Start `coroutine` on the running loop and report its failure."""

        async def run() -> None:
            with self.watch(where):
                await coroutine

        return asyncio.get_running_loop().create_task(run(), name=where)

    def thread(self, target: Callable[[], None], where: str) -> threading.Thread:
        """Start a daemon thread that runs `target` and return it; report its failure."""

        def run() -> None:
            with self.watch(where):
                target()

        thread = threading.Thread(target=run, name=f"codecompanion-{where}", daemon=True)
        thread.start()
        return thread


class EngineLoop:
    """One asyncio loop on one daemon thread."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._on_unhandled)
        self._loop.set_default_executor(
            concurrent.futures.ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="codecompanion")
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = guard.thread(self._run, "engine")

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=LAST_MOMENT_S))
        finally:
            self._loop.close()

    def _on_unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        message = str(context.get("message", "unhandled"))
        self._guard.report(f"engine loop ({message})", error if error is not None else RuntimeError(message))

    def spawn(self, coroutine: Coroutine[Any, Any, Any], where: str) -> None:
        """Start `coroutine` as a guarded task; may be called from any thread. Tasks begin in the order of the calls."""

        def start() -> None:
            task = self._guard.task(coroutine, where)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(start)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]], grace_s: float, limit_s: float) -> bool:
        """Wait up to `grace_s` for running tasks, run `last()`, cancel the rest and stop the loop.

        Return whether this took at most `limit_s`. Call it from another thread; the loop cannot be used afterwards.
        """
        if not self._thread.is_alive():
            return True

        async def wind_down() -> None:
            if self._tasks:
                await asyncio.wait(set(self._tasks), timeout=grace_s)
            with self._guard.watch("closing"):
                await last()

        done = asyncio.run_coroutine_threadsafe(wind_down(), self._loop)
        try:
            done.result(limit_s)
            finished = True
        except concurrent.futures.TimeoutError:
            logger.warning("shutdown took longer than %.1f s; exiting", limit_s)
            finished = False
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2 * LAST_MOMENT_S)
        return finished
