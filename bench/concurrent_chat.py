"""A chat that streams during other work in the same editor, and its longest pause."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.plugins import Driven
from tests.providers.chat.answers import Answer, reply

CHUNK_S = 0.01
SECONDS = 120
QUIET_S = 0.5


@dataclass
class Stream:
    """A chat that streams 100 chunks a second, in its own window."""

    driven: Driven
    buffer: int

    @staticmethod
    def answer() -> Answer:
        """Return the stream; it lasts longer than any measurement, and ends with the editor."""
        parts: list[Any] = []
        for event in reply("a line of text that goes on\n" * (4 * SECONDS), chunk_chars=1).parts[: 100 * SECONDS]:
            parts += [event, CHUNK_S]
        return Answer(parts=tuple(parts))

    def begin(self) -> None:
        """Watch the stream from now on."""
        self.driven.nvim.lua("bench.follow(...)", self.buffer)

    def longest_gap(self) -> float:
        """Return the longest time without a change of its buffer since `begin`, in ms."""
        followed = self.driven.nvim.lua("return bench.followed(...)", self.buffer)
        if not followed["changes"]:
            raise RuntimeError("the second chat did not stream")
        return float(followed["longest"])


@contextmanager
def streaming(driven: Driven) -> Iterator[Stream]:
    """Open a chat, let it stream in its own window, and go to another window."""
    buffer = driven.open()
    driven.nvim.notify_lua("bench.ask(...)", "STREAM", "000000")
    driven.nvim.wait_lua("return vim.api.nvim_buf_line_count(...) > 8", buffer, timeout=60)
    driven.nvim.command("vsplit")
    driven.nvim.command("enew")
    time.sleep(QUIET_S)
    yield Stream(driven, buffer)
