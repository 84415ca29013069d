"""A loopback server in a thread of its own, for tests that are not async."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from tests.patience import PATIENCE_S
from tests.providers.loopback.server import LoopbackServer
from tests.providers.loopback.token_count import encode
from tests.providers.loopback.wire_schemas import Kind, build_validators

Server = TypeVar("Server", bound=LoopbackServer)


class LoopbackThread(Generic[Server]):
    """Serve in a thread until the `with` block ends; `make` is called in that thread's event loop.

    `kinds` are the kinds of request bodies that the server checks.
    """

    def __init__(self, make: Callable[[], Server], *kinds: Kind) -> None:
        self._make = make
        self._kinds = kinds
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopback-server", daemon=True)
        self.server: Server
        self.port = 0
        """Port on which the server listens, 0 for any free port."""

    def __enter__(self) -> Server:
        # The vocabulary and the SDK's types take seconds: the first request must not wait for them, tests have limits.
        encode("warm")
        build_validators(*self._kinds)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(PATIENCE_S)
        except BaseException:
            self._stop()
            raise
        return self.server

    async def _start(self) -> None:
        self.server = self._make()
        await self.server.start(self.port)

    def __exit__(self, *error: object) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self.server.close(), self._loop).result(PATIENCE_S)
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()
