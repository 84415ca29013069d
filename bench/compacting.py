"""Compaction of long histories: the time without the summariser's own, and its effect on a second chat.

The server's log has the times when a summary was requested and sent, and when the next request of the chat arrived.
Ours compacts before the request that would be too large, between two tool calls too; codecompanion.nvim compacts after
a turn, then sends the chat again. Both are measured from the earliest possible moment to the arrival of the smaller
request, without the summariser's own time.
"""

from __future__ import annotations

import re
from contextlib import nullcontext

from bench.concurrent_chat import Stream, streaming
from bench.figures import Figure, Measurement, Samples
from bench.plugins import LONG_S, Side
from bench.served import Answers, Entry, Served, is_chat, marker, served
from bench.working_area import Room
from tests.providers.chat.answers import Answer, Call, reply, whole_reply
from tests.providers.loopback.server import Received
from tests.summaries import nine_sections

SUMMARY = nine_sections("The user wants the tests to pass. " * 20)
CHARS = 1000
COUNT_EDITS = """
vim.api.nvim_create_autocmd("User", { pattern = "CodeCompanionChatEdited", callback = function()
  bench.edited = true
end })
"""
EDITED = 0.8
"""Share of the window that the history of `editing` fills."""
FULL = 0.92
"""Share of the window, as the server reports it between two tool calls: above the trigger of a compaction."""


def compaction(side: Side, size: int, room: Room) -> Samples:
    """Compact before a message, in a tool loop, and in a tool loop while another chat streams."""
    taken: dict[str, list[float]] = {}
    tokens = sum(message.tokens for message in room.history(size * 1000, CHARS))
    alone = _compact(side, room, size, tokens, loop=False)
    taken |= {"alone": [alone.beyond_ms], "after": [alone.after_ms], "cpu": [alone.cpu_ms], "stall": [alone.stall_ms]}
    if side.has_host:
        taken["loop"] = [_compact(side, room, size, tokens, loop=True).beyond_ms]
    beside = _compact(side, room, size, tokens, loop=side.has_host, stream=True)
    taken["stream"] = [beside.stream_ms]
    return taken


def editing(side: Side, size: int, room: Room) -> Samples:
    """Send a message into a history above the limit of context editing, below that of compaction."""
    root, number = room.fresh("editing"), size * 1000
    chat = room.chat(side, root, number, CHARS)
    tokens = sum(message.tokens for message in room.history(number, CHARS))
    with served() as server, side.start(root, server.url, {"window": int(tokens / EDITED)}) as driven:
        driven.open(chat)
        driven.nvim.lua(COUNT_EDITS)
        driven.longest_stall()
        before = driven.cpu_ms()
        sent = driven.ask("hello")
        taken = {"first": [sent.first_token_ms], "cpu": [driven.cpu_ms() - before], "stall": [driven.longest_stall()]}
        if not driven.nvim.lua("return bench.edited"):
            raise RuntimeError("nothing was edited")
    room.forget(root)
    return taken


class Compacted:
    """The times of one compaction."""

    def __init__(self, entries: list[Entry], began_s: float) -> None:
        summaries = [entry for entry in entries if entry.kind == "summary"]
        after = next(e for e in entries if e.kind == "chat" and e.received_s > summaries[-1].answered_s)
        busy_s = sum(entry.answered_s - entry.received_s for entry in summaries)
        self.beyond_ms = (after.received_s - began_s - busy_s) * 1000
        self.after_ms = (after.received_s - summaries[-1].answered_s) * 1000
        self.cpu_ms = self.stall_ms = self.stream_ms = 0.0


def _compact(side: Side, room: Room, size: int, tokens: int, *, loop: bool, stream: bool = False) -> Compacted:
    window = int(tokens / 0.7) if loop else tokens
    root = room.fresh("compaction")
    chat = room.chat(side, root, size * 1000, CHARS)
    with (
        served(_answers(side, window, loop=loop)) as server,
        side.start(root, server.url, side.always_compact(window)) as driven,
        streaming(driven) if stream else nullcontext() as other,
    ):
        driven.open(chat)
        driven.longest_stall()
        before = driven.cpu_ms()
        if isinstance(other, Stream):
            other.begin()
        driven.nvim.notify_lua("bench.ask(...)", "LOOP" if loop else "hello", "000001")
        driven.nvim.wait_for(lambda: _is_over(server), "the request after the compaction", LONG_S)
        driven.idle()
        first = next(e for e in server.entries() if e.kind in ("chat", "summary"))
        if loop and first.kind != "chat":
            raise RuntimeError("it was compacted before the tool loop began")
        sent_s = driven.nvim.lua("return bench.sent_at") / 1000
        done = Compacted(server.entries(), first.answered_s if first.kind == "chat" else sent_s)
        done.stall_ms = driven.longest_stall()
        done.cpu_ms = driven.cpu_ms() - before
        if isinstance(other, Stream):
            done.stream_ms = other.longest_gap()
    room.forget(root)
    return done


def _is_over(server: Served) -> bool:
    kinds = [entry.kind for entry in server.entries() if entry.kind in ("chat", "summary")]
    return "summary" in kinds and kinds[-1] == "chat"


def _answers(side: Side, window: int, *, loop: bool) -> Answers:
    """Return the answers: a summary to the summariser, a tool call first in a loop, then a few words."""
    called = False

    def answer(received: Received) -> tuple[str, Answer]:
        nonlocal called
        if b"STREAM QUESTION" in received.body:
            return "stream", Stream.answer()
        if not is_chat(received):
            streams = re.search(rb'"stream":\s*true', received.body)
            return "summary", reply(SUMMARY, chunk_chars=200) if streams else whole_reply(SUMMARY)
        if loop and not called:
            called = True
            usage = {"prompt_tokens": int(FULL * window), "completion_tokens": 20}
            usage["total_tokens"] = usage["prompt_tokens"] + 20
            call = Call("get_diagnostics", side.call_arguments("a.txt"), id="call1")
            return "chat", reply(calls=[call], usage=usage)
        return "chat", reply(marker(received), chunk_chars=12)

    return answer


MEASUREMENTS = (
    Measurement(
        "compaction",
        "Compaction, without the summariser's own time",
        (
            Figure("alone", "before a message: time until the smaller request arrives"),
            Figure("after", "… the part after the summary was sent"),
            Figure("cpu", "CPU time of all processes"),
            Figure("loop", "between two tool calls: time until the smaller request arrives"),
            Figure("stall", "longest stall of the editor"),
            Figure("stream", "longest pause of a stream in a second chat meanwhile"),
        ),
        compaction,
        sizes=(1, 10),
        quick_sizes=(1,),
        size_unit="MB",
        peer_sizes=(1, 10),
        note="codecompanion.nvim compacts only after a turn, so its stream was measured during such a compaction.",
    ),
    Measurement(
        "editing",
        "Context editing",
        (
            Figure("first", "sent → first token"),
            Figure("cpu", "CPU time of all processes per turn"),
            Figure("stall", "longest stall of the editor"),
        ),
        editing,
        sizes=(1, 10),
        quick_sizes=(1,),
        size_unit="MB",
    ),
)
