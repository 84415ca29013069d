"""Drives completion at the cursor in a real Neovim with the fake host: requests, answers and ghost text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from chat_driver import INIT
from harness import Nvim, lua_string

OPTIONS = {"enabled": True, "debounce": 50, "adaptive": False}


class Ghost:
    """A Neovim with completion on; `suggest` sets the answers, or `hold` lets the test give them one by one."""

    def __init__(self, nvim: Nvim) -> None:
        """Use a Neovim whose init begins with that of `start`."""
        self.nvim = nvim

    def suggest(self, *texts: str, **fields: Any) -> None:
        """Answer every request with these texts from now on."""
        result = json.dumps({"items": [{"text": text} for text in texts], "why": "", **fields})
        self.nvim.lua(
            "local result = vim.json.decode(..., { luanil = { object = true } })"
            " require('codecompanion.host').answers.complete_code = function() return result end",
            result,
        )

    def hold(self) -> None:
        """Answer nothing automatically."""
        self.nvim.lua("require('codecompanion.host').answers.complete_code = nil")

    def answer(self, number: int, *texts: str, error: str = "", **fields: Any) -> None:
        """Answer the request of that number (1 = the first)."""
        result = json.dumps({"items": [{"text": text} for text in texts], "why": "", **fields})
        self.nvim.lua(
            "local number, result, err = ..."
            " result = vim.json.decode(result, { luanil = { object = true } })"
            " local n = 0 for _, r in ipairs(require('codecompanion.host').requests) do"
            " if r.verb == 'complete_code' then n = n + 1"
            " if n == number then r.callback(err ~= '' and err or nil, result) end end end",
            number,
            result,
            error,
        )

    def asked(self, verb: str = "complete_code") -> list[dict[str, Any]]:
        """Return the requests to the host."""
        return list(self.nvim.lua("return require('codecompanion.host').sent(...)", verb))

    def wait_asked(self, number: int) -> dict[str, Any]:
        """Wait until the host has received `number` requests; return the last one."""
        self.nvim.wait_for(lambda: len(self.asked()) >= number, f"question {number}")
        assert len(self.asked()) == number
        return self.asked()[-1]

    def pause(self) -> None:
        """Wait for the end of a typing pause and its effects, by a timer that is due after it."""
        self.nvim.lua("_G.paused = false; vim.defer_fn(function() _G.paused = true end, ...)", OPTIONS["debounce"] + 10)
        self.nvim.wait_lua("return _G.paused")

    def status(self) -> str:
        """Return the output of `:CodeCompanion complete status`."""
        self.nvim.lua("require('codecompanion.inline').begin()")  # as the command does
        return str(self.nvim.lua("return require('codecompanion.inline.completion_status').sentences()[1]"))

    def shown(self) -> str:
        """Return the displayed suggestion, or "" if there is none."""
        text: str = self.nvim.lua(
            """
            local ns, found = vim.api.nvim_create_namespace("codecompanion.ghost"), {}
            for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })) do
              local lines = { (mark[4].virt_text or { { "" } })[1][1] }
              for _, line in ipairs(mark[4].virt_lines or {}) do
                lines[#lines + 1] = table.concat(vim.tbl_map(function(chunk) return chunk[1] end, line))
              end
              found[#found + 1] = table.concat(lines, "\\n")
            end
            return table.concat(found, "|")
            """
        )
        return text

    def wait_shown(self, text: str) -> None:
        """Wait until this suggestion is displayed ("" = none)."""
        self.nvim.wait_for(lambda: self.shown() == text, f"the ghost text {text!r}, not {self.shown()!r}")

    def type(self, keys: str) -> None:
        """Type keys and let Neovim process them."""
        self.nvim.feed(keys)
        self.nvim.settle()

    def open(self, name: str, text: str = "", cursor: tuple[int, int] = (1, 0)) -> None:
        """Edit a file that is not on disk."""
        self.nvim.command(f"edit {name}")
        self.nvim.lua(
            "local text, row, col = ... vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.split(text, '\\n'))"
            " vim.bo.modified = false vim.api.nvim_win_set_cursor(0, { row, col })",
            text,
            *cursor,
        )


def start(factory: Callable[..., Nvim], *, options: dict[str, Any] | None = None, init: str = "", **more: Any) -> Ghost:
    """Start Neovim with completion on."""
    settings = {"python": {"host_prog": sys.executable}, "completion": {**OPTIONS, **(options or {})}}
    setup = f"require('codecompanion').setup(vim.json.decode({lua_string(json.dumps(settings))}))\n"
    return Ghost(factory(init=INIT + init + setup, size=more.pop("size", (80, 16)), **more))
