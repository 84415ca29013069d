"""Edits in place and tools of MCP servers, each beside a plain message or a built-in tool of the same run."""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from typing import Any

from bench import REPO
from bench.figures import Figure, Measurement, Samples
from bench.plugins import NUMBERS, Driven, Ours, Side
from bench.served import Answers, first_words, is_chat, marker, served
from bench.working_area import Room
from tests.providers.chat.answers import Answer, Call, reply
from tests.providers.loopback.server import Received

STEPS = 9
PROPER = REPO / "tests" / "mcp" / "proper.py"


def edit_in_place(side: Side, size: int, room: Room) -> Samples:
    """Measure from the command to the first proposed text on the screen, also as a multiple of a plain message."""

    def answer(received: Received) -> tuple[str, Answer]:
        if b"EDIT" in received.body:
            return "edit", reply(f"placement: replace\n```python\n{marker(received)}\n```\n")
        return first_words(received)

    root = room.fresh("edits")
    with served(answer) as server, side.start(root, server.url) as driven:
        driven.open()
        driven.ask("warm up")
        plain = [driven.ask("hello").first_token_ms for _ in room.times(7)]
        driven.nvim.command("edit code.py")
        driven.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'x = 1', 'y = 2' })")
        edits = [_edit(driven) for _ in range(1 + len(room.times(7)))][1:]
    return {"edit": edits, "times": [statistics.median(edits) / statistics.median(plain)]}


def _edit(driven: Driven) -> float:
    """Request an edit, wait until it is proposed, reject it; return the ms until its first text was on the screen."""
    nvim, number, started = driven.nvim, f"{next(NUMBERS):06}", time.monotonic()
    nvim.notify_lua(f"vim.cmd('1CodeCompanion EDIT QUESTION-{number}')")
    nvim.wait_for(lambda: f"TOKEN-{number}" in nvim.screen(), "the first proposed text")
    took = (nvim.grid.flushes[-1] - started) * 1000
    nvim.wait_lua("return (vim.b.codecompanion_edit or {}).state == 'proposed'")
    nvim.feed("g3")
    nvim.wait_lua("return vim.b.codecompanion_edit == nil")
    return took


def mcp_call(side: Side, size: int, room: Room) -> Samples:
    """Measure one step of a tool loop: a tool of a local server beside a built-in one."""
    entry = {"enabled": True, "cmd": [sys.executable, str(PROPER)], "require_approval_before": False}
    plain = _steps(Ours(), room, "get_diagnostics", lambda number: {"path": f"f{number}"})
    served_by = Ours(servers={"proper": entry})
    called = _steps(served_by, room, "proper__add", lambda number: {"one": number, "other": 1})
    return {"step": called, "times": [statistics.median(called) / statistics.median(plain)]}


def _steps(side: Side, room: Room, tool: str, arguments: Any) -> list[float]:
    with served(_calls(tool, arguments)) as server, side.start(room.fresh("mcp"), server.url) as driven:
        driven.open()
        driven.ask("warm up")
        driven.ask("LOOP")
        entries = server.entries()
    asked = [entry for entry in entries if entry.kind == "step"]
    if len(asked) < STEPS:
        raise RuntimeError(f"{tool} was called {len(asked)} times")
    pairs = itertools.pairwise([*asked, entries[-1]])
    return [(two.received_s - one.answered_s) * 1000 for one, two in pairs][1:]


def _calls(tool: str, arguments: Any) -> Answers:
    called = 0

    def answer(received: Received) -> tuple[str, Answer]:
        nonlocal called
        if not is_chat(received) or b"LOOP" not in received.body or called == STEPS:
            return first_words(received)
        called += 1
        return "step", reply(calls=[Call(tool, json.dumps(arguments(called)), id=f"x{called}")])

    return answer


MEASUREMENTS = (
    Measurement(
        "edits",
        "An edit in place",
        (
            Figure("edit", "command → first proposed text"),
            Figure("times", "… divided by the time to a plain message's first token", "×"),
        ),
        edit_in_place,
    ),
    Measurement(
        "mcp",
        "A tool of an MCP server",
        (
            Figure("step", "tool call sent → next request received"),
            Figure("times", "… divided by the time of a built-in tool", "×"),
        ),
        mcp_call,
    ),
)
