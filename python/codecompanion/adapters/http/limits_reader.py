"""Asks a server how large the windows of its models are, where its entry says it can tell (lesson 30).

Never on the path of a request, and never trouble for the user: a server that does not answer leaves the window unknown,
and what an unknown window means is said elsewhere (R-506). A server that loads a model with the first request (Ollama,
LM Studio) can tell only after that, so it is asked again when the first reply of a model begins, once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from codecompanion.errors import AdapterError

_log = logging.getLogger(__name__)

MAX_WAIT_S = 3.0


class LimitsReader:
    """`fetch` gets the server's answer and gives it to the wire format; `is_known` tells whether it was enough."""

    def __init__(self, fetch: Callable[[], Awaitable[None]], is_known: Callable[[str], bool]) -> None:
        self._fetch, self._is_known = fetch, is_known
        self._asked: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    async def ask(self) -> None:
        """Ask now; what goes wrong is logged only."""
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                await self._fetch()
        except (AdapterError, TimeoutError) as error:
            _log.info("the server did not tell its windows: %s", error or f"no answer in {MAX_WAIT_S:g} s")

    def ask_in_background(self, model: str) -> None:
        """Ask while the first reply of a model arrives, unless its window is known."""
        if model not in self._asked and not self._is_known(model) and (self._task is None or self._task.done()):
            self._asked.add(model)
            self._task = asyncio.get_running_loop().create_task(self.ask())

    async def aclose(self) -> None:
        """Stop asking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
