"""The loopback server for measurements; it runs in a separate process so as not to slow the editor's screen reader.

`served(answer)` starts it. `answer` receives a request and returns a word for the log and the answer; it runs in the
other process, so its state stays there. `Served.entries()` returns the log, with the time when each request had fully
arrived. Times are those of `time.monotonic()`, which is also the clock of `vim.uv.hrtime()`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from tests.providers.chat.answers import Answer, reply
from tests.providers.chat.server import ChatServer
from tests.providers.loopback.server import Received

Answers = Callable[[Received], tuple[str, Answer]]
END_S = 10.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A request: its name from `answer`, when it arrived, when its answer began to be sent, and its size."""

    kind: str
    received_s: float
    answered_s: float
    size_bytes: int


@dataclass
class Served:
    """A running server."""

    url: str
    _log: Connection
    _seen: list[Entry] = field(default_factory=list)

    def entries(self, kind: str = "") -> list[Entry]:
        """Return the requests so far, oldest first, optionally only those of one kind."""
        while self._log.poll():
            self._seen.append(self._log.recv())
        return [entry for entry in self._seen if not kind or entry.kind == kind]


def marker(received: Received) -> str:
    """Return the first word of the answer to a request: the number of its newest question, which is unique."""
    return "TOKEN-" + received.body.rpartition(b"QUESTION-")[2][:6].decode()


def first_words(received: Received) -> tuple[str, Answer]:
    """Answer with the marker and a few words."""
    return "chat", reply(f"{marker(received)} and the rest of the answer", chunk_chars=12)


def is_chat(received: Received) -> bool:
    """Return whether the request is from a chat: a summariser's requests have no tools."""
    return b'"tools":' in received.body


@contextmanager
def served(answer: Answers = first_words) -> Iterator[Served]:
    """Run a server for the duration of the block."""
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(answer, other), daemon=True)
    process.start()
    other.close()
    try:
        yield Served(mine.recv(), mine)
    finally:
        process.terminate()
        process.join(END_S)
        mine.close()


def _run(answer: Answers, log: Connection) -> None:
    def logged(received: Received) -> Answer:
        at = time.monotonic()
        kind, given = answer(received)
        log.send(Entry(kind, at, time.monotonic(), len(received.body)))
        return given

    asyncio.run(_serve(ChatServer(check=False, default=logged), log))


async def _serve(server: ChatServer, log: Connection) -> None:
    await server.start()
    log.send(server.url)
    await asyncio.Event().wait()
