"""Waits on 127.0.0.1 for the browser's callback and answers one valid callback with a page that repeats none of it.

All other requests (other programs, a favicon, a wrong state) are refused and do not affect the attempt. Only the head
of a request is read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from codecompanion.adapters.chatgpt.callback import Attempt, Callback, OtherLogin, read_callback
from codecompanion.adapters.chatgpt.provider import CALLBACK_PATH
from codecompanion.errors import AuthenticationFailed, InputError

HOST = "127.0.0.1"
_HEAD_LIMIT_S = 10.0
_MAX_HEAD = 16_384
_MAX_ADDRESS = 8_000
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Return to Neovim</title>
<style>body{font:17px system-ui,sans-serif;max-width:32rem;margin:18vh auto;padding:0 1.5rem}</style>
<h1>Return to Neovim</h1><p>Neovim completes the login. You can close this tab.</p></html>"""
_NOT_THIS = "This is not the login that Neovim is waiting for. Return to the tab that Neovim opened.\n"
_HEADERS = (
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
    "Connection: close\r\n"
)


class Listener:
    """Listens for one attempt, which `make` creates from the port. A context manager that stops listening on exit."""

    def __init__(self, make: Callable[[int], Attempt]) -> None:
        self._make = make
        self._server: asyncio.Server | None = None
        self._answers: set[asyncio.Task[None]] = set()
        self._result: asyncio.Future[Callback] = asyncio.get_running_loop().create_future()
        self.attempt: Attempt

    async def __aenter__(self) -> Listener:
        try:
            self._server = await asyncio.start_server(self._serve, HOST, 0, limit=_MAX_HEAD, start_serving=False)
            self.attempt = self._make(int(self._server.sockets[0].getsockname()[1]))
            await self._server.start_serving()
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise InputError(f"Cannot listen on {HOST} for the browser's response ({reason}).") from None
        return self

    async def __aexit__(self, *error: Any) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._answers:
            task.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)
        self._result.cancel()

    async def wait(self) -> Callback:
        """Wait for the callback and return it.

        Raises:
            AuthenticationFailed: the user or OpenAI declined.
        """
        return await self._result

    def take(self, address: str) -> None:
        """Accept the URL that the browser was redirected to, as if the browser had requested it here.

        Raises:
            InputError: the URL does not belong to this attempt; the message gives the expected form.
        """
        line = "".join(address[:_MAX_ADDRESS].split())
        try:
            parts = urlsplit(line)
        except ValueError:
            parts = urlsplit("")
        if parts.path != CALLBACK_PATH or not parts.query:
            wanted = f"The correct address begins with {self.attempt.redirect}?"
            raise InputError(f"This is not the final address of ChatGPT's page. {wanted}")
        try:
            self._take(parts.query)
        except OtherLogin:
            raise InputError("This address belongs to another login. Use the page that Neovim opened.") from None

    def _take(self, query: str) -> None:
        try:
            callback = read_callback(query, self.attempt)
        except AuthenticationFailed as error:
            if not self._result.done():
                self._result.set_exception(error)
        else:
            if not self._result.done():
                self._result.set_result(callback)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is None:
            return
        self._answers.add(task)
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(_HEAD_LIMIT_S):
                    await self._answer((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"), writer)
        finally:
            self._answers.discard(task)
            writer.close()

    async def _answer(self, head: str, writer: asyncio.StreamWriter) -> None:
        lines = head.split("\r\n")
        words = lines[0].split(" ")
        host = [line.partition(":")[2].strip() for line in lines[1:] if line.lower().startswith("host:")]
        path, mark, query = words[1].partition("?") if len(words) == 3 else ("", "", "")
        # A web page that reaches this machine through another host name sends that name as the host.
        is_ours = host == [f"{HOST}:{self.attempt.port}"] and path == CALLBACK_PATH and mark
        if words[0] != "GET" or not is_ours or self._result.done():
            return await _send(writer, "404 Not Found", "There is nothing here.\n", "text/plain")
        try:
            read_callback(query, self.attempt)
        except OtherLogin:
            return await _send(writer, "400 Bad Request", _NOT_THIS, "text/plain")
        except AuthenticationFailed:
            pass  # reported in Neovim
        try:
            await _send(writer, "200 OK", _PAGE, "text/html; charset=utf-8")
        finally:
            self._take(query)


async def _send(writer: asyncio.StreamWriter, status: str, text: str, kind: str) -> None:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{_HEADERS}\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
