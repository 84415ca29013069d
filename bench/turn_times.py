"""Times a message, its first token and the steps of a tool loop, by chat length and by number of open buffers."""

from __future__ import annotations

import itertools

from bench.figures import Figure, Measurement, Samples
from bench.plugins import Driven, Side
from bench.served import Answers, first_words, is_chat, served
from bench.working_area import Room
from tests.providers.chat.answers import Answer, Call, reply
from tests.providers.loopback.server import Received

STEPS, LONG_STEPS = 8, 3
LONG = 10_000
"""Number of messages from which the peer takes seconds for each request."""
OPEN_FILES = """
local count = ...
for number = 1, count do
  local bufnr = vim.fn.bufadd(("f%d.txt"):format(number))
  vim.fn.bufload(bufnr)
  vim.bo[bufnr].buflisted = true
end
"""
DIAGNOSTICS = """
local ns = vim.api.nvim_create_namespace("bench.diagnostics")
for number = 1, ... do
  local found = {}
  for at = 1, 3 do
    found[at] = { lnum = 0, col = 0, message = "something is wrong here", severity = 2 }
  end
  vim.diagnostic.set(ns, vim.fn.bufnr(("f%d.txt"):format(number)), found)
end
"""
MENTION = "hello #{buffers}"


def tool_loop(side: Side, steps: int) -> Answers:
    """Return answers that call a tool `steps` times when a question contains LOOP."""
    called = 0

    def answer(received: Received) -> tuple[str, Answer]:
        nonlocal called
        if not is_chat(received) or b"LOOP" not in received.body or called == steps:
            return first_words(received)
        called += 1
        return "step", reply(calls=[Call("get_diagnostics", side.call_arguments(f"f{called}.txt"), id=f"x{called}")])

    return answer


def turns(side: Side, size: int, room: Room) -> Samples:
    """Send messages in a chat of `size` messages, then run a tool loop in it."""
    root = room.fresh("turns")
    chat = room.chat(side, root, size)
    steps, repeats = (LONG_STEPS, 3) if size >= LONG else (STEPS, 9)
    with served(tool_loop(side, steps)) as server, side.start(root, server.url) as driven:
        # codecompanion.nvim waits two seconds for diagnostics of a file that is not open.
        driven.nvim.lua(OPEN_FILES, steps)
        driven.open(chat)
        driven.ask("warm up")
        before, times = driven.cpu_ms(), room.times(repeats)
        sent = [driven.ask("hello") for _ in times]
        cpu = (driven.cpu_ms() - before) / len(times)
        driven.ask("LOOP")
        asked = [entry for entry in server.entries() if entry.kind == "step"]
        asked += server.entries()[-1:]
    room.forget(root)
    waits = [(two.received_s - one.answered_s) * 1000 for one, two in itertools.pairwise(asked)]
    return {
        "blocked": [one.blocked_ms for one in sent],
        "first": [one.first_token_ms for one in sent],
        "cpu": [cpu],
        "step": waits,
    }


def open_buffers(side: Side, size: int, room: Room) -> Samples:
    """Send a message with `size` buffers open, each with diagnostics: without, then with a mention of all of them."""
    root = room.fresh("buffers")
    with served() as server, side.start(root, server.url) as driven:
        for number in range(1, size + 1):
            (root / "work" / f"f{number}.txt").write_text("a line of a file that is open\n" * 20, encoding="utf-8")
        driven.nvim.lua(OPEN_FILES, size)
        driven.nvim.lua(DIAGNOSTICS, size)
        driven.open()
        driven.ask("warm up")
        plain = _several(driven, room, "hello")
        mentioned = _several(driven, room, MENTION)
    room.forget(root)
    return plain | {f"{key}_mention": samples for key, samples in mentioned.items()}


def _several(driven: Driven, room: Room, text: str) -> dict[str, list[float]]:
    sent = [driven.ask(text) for _ in room.times(7)]
    return {"blocked": [one.blocked_ms for one in sent], "first": [one.first_token_ms for one in sent]}


MEASUREMENTS = (
    Measurement(
        "turns",
        "A message in a warm chat",
        (
            Figure("blocked", "time the editor is blocked"),
            Figure("first", "sent → first token"),
            Figure("cpu", "CPU time of all processes per turn"),
            Figure("step", "tool loop: tool call sent → next request received"),
        ),
        turns,
        sizes=(0, 100, 1_000, 10_000),
        quick_sizes=(0, 100),
        size_unit="messages",
        peer_sizes=(0, 100, 1_000, 10_000),
    ),
    Measurement(
        "open_buffers",
        "A message with open buffers",
        (
            Figure("blocked", "time the editor is blocked"),
            Figure("first", "sent → first token"),
            Figure("blocked_mention", "with #{buffers}: time the editor is blocked"),
            Figure("first_mention", "with #{buffers}: sent → first token"),
        ),
        open_buffers,
        sizes=(1, 200),
        quick_sizes=(1, 20),
        size_unit="buffers",
        peer_sizes=(1, 20, 200),
    ),
)
