"""Scenes of completion at the cursor, in a Neovim with a fake host."""

from __future__ import annotations

from typing import Any

from ghost import Ghost
from tests.options.desk import Desk, Given

PAUSE_MS = 100
"""Value of `completion.debounce` in these scenes."""
SPY = """
require("codecompanion.host").requests, _G.pauses = {}, {}
local pace = require("codecompanion.inline.request_pace")
_G.pause_ms = _G.pause_ms or pace.pause_ms
pace.pause_ms = function(options)
  local ms = _G.pause_ms(options)
  table.insert(_G.pauses, ms)
  return ms
end
"""


def suggested(desk: Desk, given: Given) -> Any:
    """Type code, pause, press <F5>, and type something else."""
    nvim = desk.ghosts
    ghost = Ghost(nvim)
    desk.setup(nvim, given)
    nvim.settle()
    nvim.lua(SPY)
    ghost.suggest("alpha beta\ngamma", "second")
    try:
        ghost.open("a.py")
        nvim.command("set filetype=python")
        found = list[Any]()
        for keys in ("ix = ", "<F5>", "y"):
            ghost.type(keys)
            _pause(ghost)
            found.append((ghost.shown(), nvim.lines(), [one["manual"] for one in ghost.asked()]))
        return found, nvim.lua("return _G.pauses")
    finally:
        ghost.type("<Esc>")
        nvim.command("silent! enew | silent! %bwipeout!")


def _pause(ghost: Ghost) -> None:
    """Wait for longer than the debounce pause, until its effects are complete."""
    ghost.nvim.lua("_G.paused = false; vim.defer_fn(function() _G.paused = true end, ...)", 2 * PAUSE_MS)
    ghost.nvim.wait_lua("return _G.paused")
    ghost.nvim.settle()
