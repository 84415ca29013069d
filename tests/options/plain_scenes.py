"""Scenes of the editor without a chat buffer: headless requests, prompts, own tools, the start of the host."""

from __future__ import annotations

from typing import Any

from codecompanion.wire import events
from harness import REPO
from tests.options.desk import Desk, Given

LATE_MS = 1200
"""Longer than the shortest time limit of a request."""
STAGED = {"diff": "+two", "stat": "a.txt | 1 +", "subjects": "fix: no crash", "secret": [], "files": []}
ASK_ALL = """
vim.api.nvim_buf_set_lines(0, 0, -1, true, { "one", "two" })
require("codecompanion.host").requests = {}
require("codecompanion.say").line = function(text) table.insert(_G.options_test.pressed, text) end
require("codecompanion.commands.command_line").run("sort the lines")
require("codecompanion.headless.commit_message").run()
require("codecompanion.edit_in_place").start("swap the lines", { 1, 2 })
"""


def asked(desk: Desk, given: Given, *, late: bool = False) -> Any:
    """Request a command line, a commit message and an edit in place; with `late`, no answer arrives in time."""
    chat = desk.chats
    desk.setup(chat.nvim, given)
    chat.nvim.lua("_G.options_test.pressed, _G.say_line = {}, require('codecompanion.say').line")
    try:
        chat.answer("read_staged", STAGED)
        chat.nvim.lua(ASK_ALL)
        chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 3, "three chats")
        opened = [(one["purpose"], one.get("adapter")) for one in chat.sent("open_chat")]
        if late:
            for one in chat.sent("open_chat"):
                opened_chat = {"title": "", "adapter": "openai", "model": "gpt-4o", "window": 128_000, "policy": ""}
                chat.push_soon(events.ChatOpened(chat=one["chat"], **opened_chat))
            chat.nvim.lua("vim.wait(..., function() return false end)", LATE_MS)
        return sorted(opened), chat.nvim.lua("return _G.options_test.pressed")
    finally:
        chat.nvim.lua(
            """require('codecompanion.headless.headless_question').cancel_all()
               require('codecompanion.say').line = _G.say_line"""
        )
        chat.nvim.command("silent! enew | silent! %bwipeout!")
        chat.nvim.settle()


def late(desk: Desk, given: Given) -> Any:
    """Send the requests, and wait longer than the shortest time limit."""
    return asked(desk, given, late=True)


def prompts(desk: Desk, given: Given) -> Any:
    """List the prompts, and ask the host for those in files."""
    nvim = desk.chats.nvim
    nvim.lua("require('codecompanion.host').requests = {}")
    desk.setup(nvim, given)
    desk.chats.answer("list_prompts", {"prompts": [], "problems": []})
    nvim.lua("require('codecompanion.prompt_library').refresh()")
    names = nvim.lua(
        """return vim.tbl_map(function(one) return { one.name, one.description, one.alias } end,
             require('codecompanion.prompt_library').list())"""
    )
    desk.chats.nvim.wait_for(lambda: desk.chats.sent("list_prompts"), "list_prompts")
    return names, desk.chats.sent("list_prompts")[-1]["folders"]


def own_tool(desk: Desk, given: Given) -> Any:
    """Let the host ask for a call of the user's tool."""
    nvim = desk.chats.nvim
    desk.setup(nvim, given)
    call = "{ name = 'mine', arguments = { word = 'pencil' }, root = '/', chat = 'c' }"
    return nvim.lua(
        f"local found require('codecompanion.host.run_own_tools').run(1, {call}, function(...) found = {{ ... }} end)"
        " return found"
    )


def saved(desk: Desk, given: Given) -> Any:
    """Let the model edit an open file that an autocommand formats."""
    nvim = desk.chats.nvim
    desk.setup(nvim, given)
    path = desk.folder("saved") / "a.txt"
    path.write_text("one\n")
    nvim.command(f"edit {path}")
    nvim.command("autocmd BufWritePre <buffer> silent %s/two/2/e")
    change = """return require('codecompanion.files.edit_buffer').change({
      path = ..., buffer = vim.api.nvim_get_current_buf(), tick = vim.b.changedtick, text = "two\\n" })"""
    answer = nvim.lua(change, str(path))
    nvim.command("enew | silent! %bwipeout!")
    return answer, path.read_text()


START = """
local begun, jobstart = {}, vim.fn.jobstart
vim.fn.jobstart = function(command) begun = command return 0 end
local real = dofile(... .. "/lua/codecompanion/host/init.lua")
real.start()
vim.wait(5000, function() return (real.status()) == "failed" end, 5)
vim.fn.jobstart = jobstart
return { begun, { real.status() } }
"""


def started(desk: Desk, given: Given) -> Any:
    """Start the real host with a program that cannot be started."""
    nvim = desk.chats.nvim
    desk.setup(nvim, given)
    return nvim.lua(START, str(REPO))


CHOOSE = """
local before = { vim.env.OPENAI_API_KEY, vim.env.ANTHROPIC_API_KEY }
vim.env.OPENAI_API_KEY, vim.env.ANTHROPIC_API_KEY = "pencil", "pencil"
local made
require("codecompanion.adapters.default_adapter").make(require("codecompanion.config").options, function(choice)
  made = choice
end)
vim.wait(5000, function() return made ~= nil end, 5)
vim.env.OPENAI_API_KEY, vim.env.ANTHROPIC_API_KEY = before[1], before[2]
return made.name
"""


def chosen(desk: Desk, given: Given) -> Any:
    """Choose the adapter of new chats when two adapters have a key."""
    nvim = desk.chats.nvim
    desk.setup(nvim, given)
    return nvim.lua(CHOOSE)
