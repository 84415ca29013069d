"""Bursts: thousands of chunks, a stream into a long chat while keys are typed, a tool result of 5 MB, memory."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

from bench.figures import Figure, Measurement, Samples
from bench.plugins import Side
from bench.served import Answers, first_words, is_chat, served
from bench.working_area import Room
from tests.providers.chat.answers import Answer, Call, reply
from tests.providers.loopback.server import Received

CHUNK_CHARS = 7
TEXTS = (("lines", "word and word\n"), ("line", "word and word "))
KEYS_A_SECOND = 15
BIG_LINES = 250_000
"""Lines of a file of 5 MB."""


def burst(side: Side, size: int, room: Room) -> Samples:
    """Send `size` chunks at once: as lines, and as one endless line."""
    taken: dict[str, list[float]] = {}
    for name, line in TEXTS:
        text = line * (size * CHUNK_CHARS // len(line))
        whole = reply(text + "LASTTOKEN", chunk_chars=CHUNK_CHARS)
        body = b"".join(part for part in whole.parts if isinstance(part, bytes))

        def answer(received: Received, body: bytes = body) -> tuple[str, Answer]:
            return "chat", Answer(parts=(body,))

        stalls, shown = [], []
        with served(answer) as server:
            for _ in room.times(1 if name == "line" else 3):
                with side.start(room.fresh("burst"), server.url) as driven:
                    driven.open()
                    driven.longest_stall()
                    driven.nvim.notify_lua("bench.ask('go', '000000') bench.watch('LASTTOKEN')")
                    shown.append(driven.drawn() - server.entries()[-1].answered_s * 1000)
                    stalls.append(driven.longest_stall())
        taken |= {f"{name}_stall": stalls, f"{name}_shown": shown}
    return taken


def typing(side: Side, size: int, room: Room) -> Samples:
    """Type while 200 chunks a second stream into a long chat: keystroke latency, time without a screen update."""
    seconds = 2 if room.quick else 6
    parts: list[Any] = []
    for event in reply("a line of text that goes on\n" * 25 * seconds, chunk_chars=4).parts:
        parts += [event, 0.005] if isinstance(event, bytes) else [event]
    root = room.fresh("typing")
    chat = room.chat(side, root, size)
    keys = []
    with (
        served(lambda received: ("chat", Answer(parts=tuple(parts)))) as server,
        side.start(root, server.url) as driven,
    ):
        nvim = driven.nvim
        driven.open(chat)
        nvim.notify_lua("bench.ask('go', '000000')")
        nvim.wait_screen("a line of text")
        nvim.feed("<Esc>GA")
        first = len(nvim.grid.flushes)
        for number in range(KEYS_A_SECOND * seconds):
            typed, before = f"k{number:03}", time.monotonic()
            nvim.notify_lua("vim.api.nvim_input(...)", typed)
            nvim.wait_for(lambda typed=typed: typed in nvim.screen(), "the typed text")
            keys.append((nvim.grid.flushes[-1] - before) * 1000)
            time.sleep(0.03)
        gaps = [(two - one) * 1000 for one, two in itertools.pairwise(nvim.grid.flushes[first:])]
        nvim.feed("<Esc>")
    room.forget(root)
    return {"key": keys, "gap": [max(gaps)]}


def big_result(side: Side, size: int, room: Room) -> Samples:
    """Read a file of 5 MB with a tool: the longest stall of the editor."""
    stalls = []
    with served(_reads()) as server:
        for _ in room.times(3):
            root = room.fresh("result")
            with side.start(root, server.url) as driven:
                (root / "work" / "big.txt").write_text("a line of a big file\n" * BIG_LINES, encoding="utf-8")
                driven.open()
                driven.longest_stall()
                driven.ask("READ")
                stalls.append(driven.longest_stall())
            room.forget(root)
    return {"stall": stalls}


def _reads() -> Answers:
    def answer(received: Received) -> tuple[str, Answer]:
        if not is_chat(received) or b'"tool_call_id"' in received.body:
            return first_words(received)
        return "call", reply(calls=[Call("read_file", json.dumps({"path": "big.txt"}), id="b1")])

    return answer


def memory(side: Side, size: int, room: Room) -> Samples:
    """Resident memory of Neovim and host, one turn after a chat of `size` messages was opened."""
    root = room.fresh("memory")
    chat = room.chat(side, root, size)
    with served() as server, side.start(root, server.url) as driven:
        driven.open(chat)
        driven.ask("hello")
        used = driven.memory_mb()
    room.forget(root)
    return {"memory": [used]}


MEASUREMENTS = (
    Measurement(
        "burst",
        "Many chunks at once",
        (
            Figure("lines_stall", "as lines: longest stall of the editor"),
            Figure("lines_shown", "as lines: time until all are shown"),
            Figure("line_stall", "as a single line: longest stall of the editor"),
            Figure("line_shown", "as a single line: time until all are shown"),
        ),
        burst,
        sizes=(5_000,),
        quick_sizes=(500,),
        size_unit="chunks",
        peer_sizes=(500, 5_000),
    ),
    Measurement(
        "typing",
        "Typing while 200 chunks a second stream into a long chat",
        (Figure("key", "key → screen, p95", of="p95"), Figure("gap", "longest time without a screen update")),
        typing,
        sizes=(4_000,),
        quick_sizes=(200,),
        size_unit="messages",
    ),
    Measurement("big_result", "A tool result of 5 MB", (Figure("stall", "longest stall of the editor"),), big_result),
    Measurement(
        "memory",
        "Memory",
        (Figure("memory", "memory of Neovim and the host", "MB"),),
        memory,
        sizes=(0, 1_000, 10_000),
        quick_sizes=(0,),
        size_unit="messages",
        peer_sizes=(0, 1_000, 10_000),
    ),
)
