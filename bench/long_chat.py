"""Measures the cost of using a long chat: redrawing, typing, moving, crossing into the transcript, listing chats."""

from __future__ import annotations

import random
import time
from pathlib import Path

from bench.figures import Figure, Measurement, Samples
from bench.histories import messages, store_chat
from bench.plugins import LONG_S, Side
from bench.served import served
from bench.working_area import Room
from harness import Nvim

KEYS = """
local ns, pressed = vim.api.nvim_create_namespace("bench.keys"), nil
_G.bench_keys = {}
vim.on_key(function() pressed = vim.uv.hrtime() end, ns)
vim.api.nvim_set_decoration_provider(ns, { on_end = function()
  if pressed then table.insert(_G.bench_keys, (vim.uv.hrtime() - pressed) / 1e6) end
  pressed = nil
end })
"""
"""Measures the time from a key press to the end of the redraw that shows its effect, autocommands included."""

CROSS = """
local chat, guard = require("codecompanion.chat").current(), require("codecompanion.chat.life.transcript_guard")
local last, took = vim.api.nvim_buf_line_count(0), {}
for number = 1, ... do
  vim.api.nvim_win_set_cursor(0, { number % 2 == 1 and 5 or last, 0 })
  local start = vim.uv.hrtime()
  guard.update(chat)
  took[number] = (vim.uv.hrtime() - start) / 1e6
end
return took
"""
EDIT_AGAIN = """
bench.watch(...)
bench.began = bench.now()
vim.cmd.edit()
vim.cmd.redraw()
return bench.now() - bench.began
"""
WHOLE = "return not require('codecompanion.chat').current().restore.running"
IS_LIST = "vim.bo.filetype == 'codecompanion_resume'"


def redrawing(side: Side, size: int, room: Room) -> Samples:
    """Run `:e` in a long chat: time blocked, times to paint the newest message and the whole chat, longest stall."""
    taken: dict[str, list[float]] = {key: [] for key in ("blocked", "paint", "whole", "stall")}
    root, newest = room.fresh("redraw"), room.history(size)[-1].text[:20]
    chat = room.chat(side, root, size)
    with served() as server, side.start(root, server.url) as driven:
        driven.open(chat)
        driven.nvim.wait_lua(WHOLE, timeout=LONG_S)
        for _ in room.times(5):
            driven.longest_stall()
            taken["blocked"].append(driven.nvim.lua(EDIT_AGAIN, newest))
            began = driven.nvim.lua("return bench.began")
            taken["paint"].append(driven.drawn() - began)
            driven.nvim.wait_lua(WHOLE, timeout=LONG_S)
            taken["whole"].append(driven.nvim.lua("return bench.now()") - began)
            taken["stall"].append(driven.longest_stall())
    room.forget(root)
    return taken


def using(side: Side, size: int, room: Room) -> Samples:
    """Measure typing in the input of a long chat, pressing j and k in its transcript, and crossing between the two."""
    root, repeat = room.fresh("keys"), 1 if room.quick else 3
    chat = room.chat(side, root, size)
    with served() as server, side.start(root, server.url) as driven:
        nvim = driven.nvim
        driven.open(chat)
        nvim.wait_lua(WHOLE, timeout=LONG_S)
        lines = nvim.lua("return vim.api.nvim_buf_line_count(0)")
        nvim.lua(KEYS)
        nvim.feed("<Esc>GA")
        typed = pressed(nvim, "the quick brown fox jumps over the lazy dog " * repeat)
        nvim.feed(f"<Esc>{lines // 2}G")
        moved = pressed(nvim, ("k" * 40 + "j" * 40) * repeat)
        crossed = nvim.lua(CROSS, 40)
    room.forget(root)
    return {"typed": typed, "moved": moved, "crossed": crossed}


def pressed(nvim: Nvim, keys: str) -> list[float]:
    """Press keys one by one; return how long each key that changed the screen took, in ms."""
    nvim.lua("_G.bench_keys = {}")
    for key in keys:
        nvim.feed(key)
        time.sleep(0.005)  # like a repeating key; pressed at once they would share one redraw
    nvim.settle()
    return list(nvim.lua("return _G.bench_keys"))


def listing(side: Side, size: int, room: Room) -> Samples:
    """Open the list of stored chats; measure the time until it is on the screen, and the longest stall."""
    shown, stalls = [], []

    def store() -> Path:
        chosen, made = random.Random(1), room.fresh("list")
        for chat in range(size):
            store_chat(made, messages(4 * chosen.randint(1, 3)), f"chat-{chat}")
        return made

    root = room.once(("list", size), store)
    with served() as server, side.start(root, server.url) as driven:
        driven.open()
        for _ in room.times(5):
            driven.longest_stall()
            started = time.monotonic()
            driven.nvim.notify_lua("vim.cmd('CodeCompanionChat Resume')")
            driven.nvim.wait_lua(f"return {IS_LIST}", timeout=LONG_S)
            driven.nvim.settle()
            shown.append((time.monotonic() - started) * 1000)
            stalls.append(driven.longest_stall())
            driven.nvim.feed("<Esc>")
            driven.nvim.wait_lua(f"return not ({IS_LIST})")
    return {"shown": shown, "stall": stalls}


MEASUREMENTS = (
    Measurement(
        "redraw",
        "`:e` in a long chat",
        (
            Figure("blocked", "time the editor is blocked"),
            Figure("paint", "newest message painted"),
            Figure("whole", "everything drawn"),
            Figure("stall", "longest stall of the editor"),
        ),
        redrawing,
        sizes=(500, 5_000),
        quick_sizes=(100,),
        size_unit="messages",
    ),
    Measurement(
        "keys",
        "Keys in a long chat",
        (
            Figure("typed", "in the input: key → drawn, p95", of="p95"),
            Figure("moved", "j and k in the transcript: key → drawn, p95", of="p95"),
            Figure("crossed", "cursor moves between the two: time of the read-only guard"),
        ),
        using,
        sizes=(800, 8_000),
        quick_sizes=(200,),
        size_unit="messages",
    ),
    Measurement(
        "list",
        "Listing stored chats",
        (Figure("shown", "command → list on the screen"), Figure("stall", "longest stall of the editor")),
        listing,
        sizes=(100, 1_000),
        quick_sizes=(20,),
        size_unit="chats",
    ),
)
