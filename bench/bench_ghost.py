"""Measures completion at the cursor in a real Neovim with an attached UI: the cost of a key, the delay of ghost text.

    python -m bench.bench_ghost [--quick] [--keys N]

The cost of a key is the time spent in the plugin's autocommands for it (callbacks wrapped by a clock), in a file of
5,000 lines; and the time from `nvim_input` to the flush of the screen, with completion off and on in turns (A/B).
Target: ≤ 0.3 ms p95 per key. A fake host in the same Neovim answers after a given time, so only the editor's
side is measured: ghost text within pause + server + 15 ms.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO), str(REPO / "python"), str(REPO / "tests" / "nvim")]

from ghost import Ghost, start  # noqa: E402
from harness import Nvim  # noqa: E402

CLOCK = """
local flow = require("codecompanion.inline.flow")
_G.spent, _G.per_key = 0, {}
for _, name in ipairs({ "on_text", "on_move" }) do
  local run = flow[name]
  flow[name] = function(...)
    local began = vim.uv.hrtime()
    run(...)
    _G.spent = _G.spent + vim.uv.hrtime() - began
  end
end
vim.api.nvim_create_autocmd("TextChangedI", { callback = function()
  vim.schedule(function()
    table.insert(_G.per_key, _G.spent / 1e6)
    _G.spent = 0
  end)
end })
"""
LINE = "    total = compute(first, second) + other.value  -- a line of ordinary length"
PAUSE_MS = 100


def p95(samples: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(samples)[max(0, round(0.95 * len(samples)) - 1)]


def show(name: str, samples: list[float], target: str = "") -> None:
    """Print one line of the report."""
    figures = f"{statistics.median(samples):>10.2f} {p95(samples):>10.2f} ms   n={len(samples):<4}"
    print(f"{name:<66} {figures} {target}", flush=True)


def editor(root: Path, options: dict[str, Any]) -> Ghost:
    """Start a Neovim with a long file."""
    ghost = start(lambda **more: Nvim(root, **more).__enter__(), options=options, size=(120, 40))
    ghost.open("a.lua", "\n".join([LINE] * 5000), (2500, 0))
    return ghost


def key_costs(root: Path, keys: int) -> None:
    """Measure the time in our autocommands for each key, in text that matches a suggestion and text that does not."""
    for label, text in (("along the suggestion", "x" * keys), ("with no suggestion", ""), ("three lines below", "")):
        ghost = editor(root, {"debounce": 50})
        ghost.nvim.lua(CLOCK)
        if label == "three lines below":
            text = "x" * keys + "\nsecond\nthird\nfourth"
        if text:
            ghost.suggest(text)
        else:
            ghost.hold()
        ghost.type("o")
        if text:
            ghost.nvim.wait_for(ghost.shown, "the suggestion")
        ghost.nvim.lua("_G.per_key, _G.spent = {}, 0")
        for _ in range(keys):
            ghost.type("x")
        costs = list(ghost.nvim.lua("return _G.per_key"))
        ghost.nvim.__exit__()
        show(f"a key, {label}: time in our autocommands", costs, "≤ 0.3 p95")


def keys_to_screen(root: Path, keys: int) -> None:
    """Compare the time from a key to the screen with completion off and on, in turns."""
    ghost = editor(root, {"debounce": 50})
    ghost.suggest("x" * 10_000)
    ghost.type("ox")
    samples: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(8):
        is_on = turn % 2 == 1
        ghost.nvim.command(f"CodeCompanion complete {'on' if is_on else 'off'}")
        ghost.nvim.feed("<Esc>ox")
        if is_on:
            ghost.nvim.wait_for(ghost.shown, "the suggestion")
        ghost.nvim.settle()
        for _ in range(keys // 4):
            flushes = len(ghost.nvim.grid.flushes)
            began = time.monotonic()
            ghost.nvim.request("nvim_input", "x")
            ghost.nvim.wait_for(lambda seen=flushes: len(ghost.nvim.grid.flushes) > seen, "a flush")
            samples[is_on].append((ghost.nvim.grid.flushes[-1] - began) * 1000)
            ghost.nvim.settle()
    ghost.nvim.__exit__()
    show("a key → screen, completion off", samples[False])
    show("a key → screen, completion on, ghost text follows", samples[True])
    difference = statistics.median(samples[True]) - statistics.median(samples[False])
    print(f"  difference of the medians: {difference:.3f} ms")


def ghost_latency(root: Path, times: int) -> None:
    """Measure from the last key before the pause to the ghost text on the screen, without the pause and the server."""
    for server_ms in (0, 60):
        ghost = editor(root, {"debounce": PAUSE_MS})
        ghost.nvim.lua(
            "local ms = ... local host = require('codecompanion.host') local request = host.request"
            " host.request = function(verb, payload, callback) local made = request(verb, payload, nil)"
            " if verb == 'complete_code' then local text = 'GHOST' .. #host.sent(verb) .. '.'"
            " vim.defer_fn(function() callback(nil, { items = { { text = text } }, why = '' }) end, ms) end"
            " return made end",
            server_ms,
        )
        late = []
        for number in range(times):
            ghost.type("<Esc>o")
            ghost.nvim.lua("require('codecompanion.inline.flow').drop()")
            asked = len(ghost.asked())
            began = time.monotonic()
            ghost.nvim.request("nvim_input", str(number % 10))
            ghost.nvim.wait_for(
                lambda seen=f"GHOST{asked + 1}.", grid=ghost.nvim.grid: seen in grid.text(), "the ghost text"
            )
            late.append((ghost.nvim.grid.flushes[-1] - began) * 1000 - PAUSE_MS - server_ms)
        ghost.nvim.__exit__()
        show(f"ghost text after pause + server ({server_ms} ms)", late, "≤ 15")


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description="Measure ghost text.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keys", type=int, default=300)
    options = parser.parse_args()
    keys = 20 if options.quick else options.keys
    with tempfile.TemporaryDirectory() as folder:
        for number, measure in enumerate((key_costs, keys_to_screen, ghost_latency)):
            root = Path(folder) / str(number)
            root.mkdir()
            measure(root, keys if measure is not ghost_latency else max(5, keys // 10))


if __name__ == "__main__":
    main()
