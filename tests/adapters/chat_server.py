"""A loopback server that speaks Chat Completions: for adapter tests, Neovim tests and benchmarks.

In an async test: `async with ChatServer([reply("Hello")]) as server: … server.url … server.requests`; in another one
`ChatServerThread` (`chat_thread.py`). Answers of the script are given one per request; when it is used up, `default`
answers (it repeats the last user message). Requests are checked as OpenAI checks them (`chat_rules.py`) before an
answer of the script is spent; `check=False` leaves a body unparsed, for benchmarks with large histories.

From a shell: `python -m tests.adapters.chat_server --port 0` prints its port. The script of a running server can be
set and its requests read over HTTP, so that tests in another process can use it:
`POST /control/script` with a JSON list of `{"kind": "reply" | "whole_reply" | "failure" | "plain" | "silence", …}`
(the arguments of the function of that name in `chat_answers.py`), `GET /control/requests`, `POST /control/reset`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from tests.adapters import chat_answers
from tests.adapters.chat_answers import CLOSE, DROP, Answer, answer_from, reply
from tests.adapters.chat_rules import Refusal, count_tokens, refusal_of

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass
class Received:
    """A request as it came in. `aborted` becomes true when the client left before the answer was whole."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    query: str = ""
    aborted: bool = False

    @property
    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)


class ChatServer:
    """The server; see the module's text. `key` "" = no key is asked for. `window` is in tokens, 0 = unlimited."""

    def __init__(
        self,
        script: Iterable[Answer] = (),
        *,
        key: str = "sk-test",
        models: tuple[str, ...] = ("test-model",),
        window: int = 128_000,
        check: bool = True,
        echo_key: bool = False,
        reasoning_fields: tuple[str, ...] = (),
        default: Callable[[Received], Answer] | None = None,
    ) -> None:
        self.script = list(script)
        self.requests: list[Received] = []
        self.refusals: list[Refusal] = []
        self.connections = 0
        self._key, self._models, self._window = key, models, window
        self._check, self._echo_key, self._reasoning_fields = check, echo_key, reasoning_fields
        self._default = default or self._repeat_last
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """Return the port it listens on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        """Return the `base_url` for an adapter."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self, port: int = 0) -> None:
        """Listen on the loopback interface."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=1 << 20)

    async def close(self) -> None:
        """Stop, whatever is still running."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def __aenter__(self) -> ChatServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def wait_until(self, predicate: Callable[[], bool], limit_s: float = 5.0) -> None:
        """Wait until something the server sees makes the predicate true; fail with what was seen."""
        try:
            async with asyncio.timeout(limit_s):
                while not predicate():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            seen = [(request.method, request.path, request.aborted) for request in self.requests]
            raise AssertionError(f"not seen within {limit_s} s; requests: {seen}") from None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                if not await self._respond(request, reader, writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _respond(self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection lives on."""
        if request.path.startswith("/control/"):
            return await self._send(self._control(request), request, reader, writer)
        self.requests.append(request)
        self._changed.set()
        return await self._send(self._answer(request), request, reader, writer)

    def _answer(self, request: Received) -> Answer:
        given = request.headers.get("authorization", "")
        if self._key and given != f"Bearer {self._key}":
            shown = given.removeprefix("Bearer ") if self._echo_key else given.removeprefix("Bearer ")[:3] + "****"
            return chat_answers.failure(401, f"Incorrect API key provided: {shown}.", code="invalid_api_key")
        if request.method == "GET" and request.path == "/v1/models":
            return chat_answers.json_answer({"object": "list", "data": [{"id": name} for name in self._models]})
        if request.path != "/v1/chat/completions":
            return chat_answers.failure(404, f"Invalid URL ({request.method} {request.path})")
        if self._check:
            refusal = self._refusal(request)
            if refusal is not None:
                self.refusals.append(refusal)
                return chat_answers.json_answer(refusal.body(), status=refusal.status)
        return self.script.pop(0) if self.script else self._default(request)

    def _refusal(self, request: Received) -> Refusal | None:
        try:
            body = request.json
        except ValueError:
            return Refusal(400, "We could not parse the JSON body of your request.")
        fields = self._reasoning_fields
        return refusal_of(body, models=self._models, window=self._window, reasoning_fields=fields)

    def _repeat_last(self, request: Received) -> Answer:
        if not self._check:
            return reply("ok")
        body = request.json
        users = [message["content"] for message in body["messages"] if message["role"] == "user"]
        prompt = count_tokens(body)
        usage = {"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5}
        wants_usage = (body.get("stream_options") or {}).get("include_usage")
        return reply(f"You said: {users[-1] if users else ''}", usage=usage if wants_usage else None)

    def _control(self, request: Received) -> Answer:
        match request.path:
            case "/control/script":
                self.script.extend(answer_from(entry) for entry in request.json)
            case "/control/reset":
                self.script.clear()
                self.requests.clear()
                self.refusals.clear()
            case "/control/requests":
                kept = ((r, r.json if r.body else None) for r in self.requests)
                seen = [{"path": r.path, "aborted": r.aborted, "body": body} for r, body in kept]
                return chat_answers.json_answer(seen)
            case _:
                return chat_answers.failure(404, "unknown control")
        return chat_answers.json_answer({"ok": True})

    async def _send(
        self, answer: Answer, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        writer.write(_head(answer))
        # Pipelining is not used by any client here: bytes or an end while answering mean that the client has left.
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            for part in answer.parts:
                if part in (DROP, CLOSE):
                    await writer.drain()
                    if part == DROP:
                        writer.transport.abort()
                    return False
                if isinstance(part, bytes):
                    writer.write(part if answer.content_length else b"%x\r\n%s\r\n" % (len(part), part))
                elif await self._pause(part, leaving):
                    return False
            if not answer.content_length:
                writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True
        finally:
            if leaving.done() and not leaving.cancelled() and not leaving.exception() and not leaving.result():
                request.aborted = True
                self._changed.set()
            elif not leaving.done():
                leaving.cancel()
                await asyncio.gather(leaving, return_exceptions=True)

    async def _pause(self, part: Any, leaving: asyncio.Future[bytes]) -> bool:
        """Wait; return whether the client left meanwhile."""
        pause: Any = part.wait() if isinstance(part, asyncio.Event) else asyncio.sleep(part)
        waiting: asyncio.Future[Any] = asyncio.ensure_future(pause)
        both: set[asyncio.Future[Any]] = {waiting, leaving}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        return leaving.done()


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    path, _, query = target.partition("?")
    pairs = (line.split(":", 1) for line in lines[1:] if ":" in line)
    headers = {name.lower(): value.strip() for name, value in pairs}
    length = int(headers.get("content-length", 0))
    body = await reader.readexactly(length) if length else b""
    return Received(method, path, headers, body, query)


def _head(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Status')}"]
    if answer.content_type:
        lines.append(f"Content-Type: {answer.content_type}")
    if answer.content_length:
        lines.append(f"Content-Length: {sum(len(part) for part in answer.parts if isinstance(part, bytes))}")
    else:
        lines.append("Transfer-Encoding: chunked")
    lines.extend(f"{name}: {value}" for name, value in answer.headers)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _run(options: argparse.Namespace) -> None:
    answer = reply("x " * options.chunks, chunk_chars=2) if options.chunks else None
    server = ChatServer(
        key=options.key,
        models=tuple(options.model),
        window=options.window,
        check=not options.no_check,
        default=(lambda _: answer) if answer else None,
    )
    await server.start(options.port)
    print(server.port, flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default="sk-test", help="the key that is asked for; empty = none")
    parser.add_argument("--model", action="append", default=[], help="a model that exists; none given = all exist")
    parser.add_argument("--window", type=int, default=0, help="context window in tokens; 0 = unlimited")
    parser.add_argument("--no-check", action="store_true", help="do not parse requests (large bodies)")
    parser.add_argument("--chunks", type=int, default=0, help="answer everything with this many chunks at once")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
