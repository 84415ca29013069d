"""What a long chat costs while it is used: drawing it again, typing, moving, crossing into the transcript, the list.

    python -m bench.long_chat [--quick]

Beside `bench.editor`, and measured as it measures: a real Neovim with an attached UI, the real host, SQLite on disk.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.in_editor import Bench, editor, messages, open_chat, store_chat
from harness import Nvim
from tests.providers.chat.thread import ChatServerThread

LIST_LIMIT_S = 30

KEYS = """
local ns, pressed = vim.api.nvim_create_namespace("bench.keys"), nil
_G.bench_keys = {}
vim.on_key(function() pressed = vim.uv.hrtime() end, ns)
vim.api.nvim_set_decoration_provider(ns, { on_end = function()
  if pressed then table.insert(_G.bench_keys, (vim.uv.hrtime() - pressed) / 1e6) end
  pressed = nil
end })
"""
"""From a key to the end of the redraw that shows what it did, autocommands included."""

CROSS = """
local chat, guard = require("codecompanion.chat").current(), require("codecompanion.chat.ui.guard")
local last, took = vim.api.nvim_buf_line_count(0), {}
for number = 1, ... do
  vim.api.nvim_win_set_cursor(0, { number % 2 == 1 and 5 or last, 0 })
  local start = vim.uv.hrtime()
  guard.update(chat)
  took[number] = (vim.uv.hrtime() - start) / 1e6
end
return took
"""


def redrawing(bench: Bench) -> None:
    """`:e` in a chat of 5,000 messages: how long it blocks, the newest piece painted, everything, longest stall."""
    number = 500 if bench.quick else 5000
    blocked, paint, whole, stalls = [], [], [], []
    history, root = messages(number), bench.fresh("redraw")
    newest, oldest = history[-1].text[:8], "^" + history[0].text[:20]
    chat = store_chat(root, history)
    found = "return vim.fn.search(..., 'nw') > 0"
    with ChatServerThread(check=False) as server, editor(root, server.url) as nvim:
        open_chat(nvim, chat)
        nvim.wait_lua(found, oldest, timeout=60)
        for _ in bench.times(7):
            nvim.lua("return _G.bench_longest_stall()")
            started = time.monotonic()
            blocked.append(
                nvim.lua("local t = vim.uv.hrtime() vim.cmd.edit() vim.cmd.redraw() return (vim.uv.hrtime() - t) / 1e6")
            )
            nvim.wait_for(lambda: newest in nvim.screen(), "the newest message")
            paint.append((nvim.grid.flushes[-1] - started) * 1000)
            nvim.wait_lua(found, oldest, timeout=60)
            nvim.wait_lua("return not require('codecompanion.chat').current().restore.running", timeout=60)
            whole.append((time.monotonic() - started) * 1000)
            stalls.append(nvim.lua("return _G.bench_longest_stall()"))
    bench.add(f":e of {number:,} messages: the editor is blocked", blocked)
    bench.add(f":e of {number:,} messages: newest piece painted", paint, target="≤ 150")
    bench.add(f":e of {number:,} messages: everything drawn", whole)
    bench.add(f":e of {number:,} messages: longest stall", stalls, target="≤ 16")


def pressed(nvim: Nvim, keys: str) -> list[float]:
    """Press keys one by one; return what each that changed the screen took."""
    nvim.lua("_G.bench_keys = {}")
    for key in keys:
        nvim.feed(key)
        time.sleep(0.005)  # as a key that is held; pressed at once they would share one redraw
    nvim.settle()
    return list(nvim.lua("return _G.bench_keys"))


def using(bench: Bench) -> None:
    """Typing in the input of a long chat, j and k in what was sent, and crossing between the two."""
    root, repeat = bench.fresh("keys"), 1 if bench.quick else 4
    chat = store_chat(root, messages(400 if bench.quick else 8000))
    with ChatServerThread(check=False) as server, editor(root, server.url) as nvim:
        open_chat(nvim, chat)
        nvim.wait_lua("return not require('codecompanion.chat').current().restore.running", timeout=60)
        lines = nvim.lua("return vim.api.nvim_buf_line_count(0)")
        nvim.lua(KEYS)
        nvim.feed("<Esc>GA")
        typed = pressed(nvim, "the quick brown fox jumps over the lazy dog " * repeat)
        nvim.feed(f"<Esc>{lines // 2}G")
        moved = pressed(nvim, ("k" * 40 + "j" * 40) * repeat)
        crossed = nvim.lua(CROSS, 40)
    bench.add(f"{lines:,} lines: a key in the input, until it is drawn", typed, target="p95 < 8")
    bench.add(f"{lines:,} lines: j and k in the transcript, until it is drawn", moved, target="p95 < 8")
    bench.add(f"{lines:,} lines: the read-only guard when the cursor crosses", crossed, target="≤ 1")


def listing(bench: Bench) -> None:
    """The list of stored chats: until it is on the screen, and the longest stall."""
    number, chosen = 50 if bench.quick else 1000, random.Random(1)
    root, shown, stalls = bench.fresh("list"), [], []
    is_list = "return vim.bo.filetype == 'codecompanion_resume'"
    for chat in range(number):
        store_chat(root, messages(4 * chosen.randint(1, 3)), f"chat-{chat}")
    with ChatServerThread(check=False) as server, editor(root, server.url) as nvim:
        open_chat(nvim)
        for _ in bench.times(7):
            nvim.lua("return _G.bench_longest_stall()")
            started = time.monotonic()
            nvim.notify_lua("vim.cmd('CodeCompanionChat Resume')")
            nvim.wait_lua(is_list, timeout=LIST_LIMIT_S)
            nvim.settle()
            shown.append((time.monotonic() - started) * 1000)
            stalls.append(nvim.lua("return _G.bench_longest_stall()"))
            nvim.feed("<Esc>")
            nvim.wait_lua(f"return not ({is_list.removeprefix('return ')})")
    bench.add(f"list of {number:,} stored chats: on the screen", shown, target="≤ 100")
    bench.add(f"list of {number:,} stored chats: longest stall", stalls, target="≤ 16")


MEASUREMENTS: tuple[Callable[[Bench], None], ...] = (redrawing, using, listing)


def main() -> int:
    """Run the measurements and print one line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small histories, few repetitions")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codecompanion-bench-") as folder:
        bench = Bench(arguments.quick, Path(folder))
        for measure in MEASUREMENTS:
            measure(bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
