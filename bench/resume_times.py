"""Stored chats: the time until the newest message is painted, the next turn, and the effect on a second chat."""

from __future__ import annotations

import time

from bench.concurrent_chat import Stream, streaming
from bench.figures import Figure, Measurement, Samples
from bench.plugins import LONG_S, Side
from bench.served import first_words, served
from bench.working_area import Room
from tests.providers.chat.answers import Answer
from tests.providers.loopback.server import Received

RESUME = """
local chat, newest = ...
bench.watch(newest)
bench.began = bench.now()
bench.resume(chat)
"""
RUNNING = "local host = require('codecompanion.host') if host.status() == 'ready' then return true end host.start()"


def first_paint(side: Side, size: int, room: Room) -> Samples:
    """Resume a stored chat as the first chat of an editor whose host is already running, and send a message at once."""
    taken: dict[str, list[float]] = {key: [] for key in ("paint", "cpu", "stall", "turn")}
    newest = room.history(size)[-1].text[:20]
    with served() as server:
        for _ in room.times(1 if size > 5_000 else 3):
            root = room.fresh("resume")
            chat = room.chat(side, root, size)
            with side.start(root, server.url) as driven:
                if side.has_host:
                    driven.nvim.wait_lua(RUNNING, timeout=LONG_S)
                driven.longest_stall()
                before = driven.cpu_ms()
                driven.nvim.notify_lua(RESUME, chat, newest)
                drawn = driven.drawn()
                taken["cpu"].append(driven.cpu_ms() - before)
                taken["paint"].append(drawn - driven.nvim.lua("return bench.began"))
                driven.nvim.wait_lua("return bench.ready()", timeout=LONG_S)
                taken["turn"].append(driven.ask("hello").first_token_ms)
                taken["stall"].append(driven.longest_stall())
            room.forget(root)
    return taken


def resume_beside(side: Side, size: int, room: Room) -> Samples:
    """Resume a stored chat while another one streams; measure the longest pause of that stream."""

    def answer(received: Received) -> tuple[str, Answer]:
        if b"STREAM QUESTION" in received.body:
            return "stream", Stream.answer()
        return first_words(received)

    gaps, undisturbed = [], []
    newest = room.history(size)[-1].text[:20]
    root = room.fresh("beside")
    chat = room.chat(side, root, size)
    with served(answer) as server, side.start(root, server.url) as driven, streaming(driven) as stream:
        stream.begin()
        time.sleep(1.0)
        undisturbed.append(stream.longest_gap())
        stream.begin()
        driven.nvim.notify_lua(RESUME, chat, newest)
        driven.drawn()
        driven.nvim.wait_lua("return bench.ready()", timeout=LONG_S)
        time.sleep(1.0)
        gaps.append(stream.longest_gap())
    room.forget(root)
    return {"gap": gaps, "before": undisturbed}


MEASUREMENTS = (
    Measurement(
        "first_paint",
        "Opening a stored chat",
        (
            Figure("paint", "command → newest message painted"),
            Figure("cpu", "CPU time of all processes until then"),
            Figure("turn", "message sent at once → first token"),
            Figure("stall", "longest stall of the editor"),
        ),
        first_paint,
        sizes=(500, 5_000, 50_000),
        quick_sizes=(100, 500),
        size_unit="messages",
        peer_sizes=(100, 500, 5_000),
        note="codecompanion.nvim stores no chats, so it reads these messages from a file.",
    ),
    Measurement(
        "resume_beside",
        "Opening a stored chat while another chat streams",
        (Figure("gap", "longest pause of the stream"), Figure("before", "… in the second before the chat is opened")),
        resume_beside,
        sizes=(5_000,),
        quick_sizes=(500,),
        size_unit="messages",
        peer_sizes=(500, 5_000),
    ),
)
