"""A loopback forwarder between the plugin and a peer that records bytes: aimock's journal has only parsed requests."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
from aiohttp import web

# Valid for one connection only, or wrong once the body is forwarded in pieces; and answers should be readable.
_NOT_FORWARDED = {"host", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding"}


@dataclass
class Exchange:
    """One request as sent by the plugin, and the part of the answer received so far."""

    path: str
    headers: dict[str, str]
    body: bytes
    status: int = 0
    answer: bytes = b""

    @property
    def json(self) -> Any:
        """Return the decoded request."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """Return the decoded events of the answer."""
        lines = self.answer.decode().splitlines()
        return [json.loads(line[5:]) for line in lines if line.startswith("data:") and "[DONE]" not in line]


class Tap:
    """Forwards to `upstream` (without `/v1`) inside the `with` block; connections cut upstream are also cut here.

    `exchanges` are the requests that have a body, which excludes those for the list of models.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream, self.url = upstream, ""
        self.exchanges: list[Exchange] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tap", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        self._session = aiohttp.ClientSession(auto_decompress=False, timeout=aiohttp.ClientTimeout(total=120))
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._forward)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_FORWARDED}
        exchange = Exchange(request.path, headers, await request.read())
        if exchange.body:
            self.exchanges.append(exchange)
        response = web.StreamResponse()
        try:
            async with self._session.request(
                request.method,
                self.upstream + request.path_qs,
                headers=headers,
                data=exchange.body,
                skip_auto_headers=("Accept-Encoding",),
            ) as answer:
                exchange.status = answer.status
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in _NOT_FORWARDED}
                response = web.StreamResponse(status=answer.status, headers=kept)
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    exchange.answer += piece
                    await response.write(piece)
        except aiohttp.ClientError:
            if request.transport is not None:
                request.transport.abort()
        return response
