"""The loopback server in a thread of its own, for tests that are not async."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

from tests.adapters.chat_answers import Answer
from tests.adapters.chat_server import ChatServer


class ChatServerThread:
    """The server in a thread of its own, for tests that are not async: `with ChatServerThread([…]) as server:`."""

    def __init__(self, script: Iterable[Answer] = (), **options: Any) -> None:
        self._script, self._options = list(script), options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chat-server", daemon=True)
        self.server: ChatServer

    def __enter__(self) -> ChatServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self.server

    async def _start(self) -> None:
        self.server = ChatServer(self._script, **self._options)
        await self.server.start()

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self.server.close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
