"""Scenes of the editor alone: a chat buffer with a fake host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chat_driver import ChatDriver
from codecompanion.wire import events
from tests.options.desk import Desk, Given


@contextmanager
def chat_of(desk: Desk, given: Given) -> Iterator[ChatDriver]:
    """Open a chat in the only window and remove it completely afterwards."""
    chat = desk.chats
    chat.nvim.lua("require('codecompanion.host').requests = {}")
    desk.setup(chat.nvim, given)
    chat.nvim.lua("require('codecompanion.chat.window.tabline').adopt()")  # as before the first chat
    chat.open(opts={})
    try:
        yield chat
    finally:
        chat.nvim.feed("<Esc>")
        chat.nvim.settle()
        chat.nvim.command("silent! tabonly | silent! only | enew | silent! %bwipeout! | set tabline&")
        chat.nvim.settle()


def pressed(desk: Desk, given: Given) -> Any:
    """Press every key of a chat buffer, and <F5>."""
    with chat_of(desk, given) as chat:
        return chat.nvim.lua("return _G.options_test.press_all()")


def keys_window(desk: Desk, given: Given) -> Any:
    """Open the list of keys and return its lines."""
    with chat_of(desk, given) as chat:
        chat.nvim.feed("<Esc>g?")
        chat.nvim.settle()
        essential = chat.nvim.lines()
        chat.nvim.feed("g?")
        chat.nvim.settle()
        return essential, chat.nvim.lines()


def completed(desk: Desk, given: Given) -> Any:
    """Type a slash in the input; return whether a menu opened."""
    with chat_of(desk, given) as chat:
        chat.nvim.feed("<Esc>i/")
        chat.nvim.settle()
        return chat.nvim.lua("return vim.fn.pumvisible()")


def drawn(desk: Desk, given: Given) -> Any:
    """Open a chat next to a split, with a turn that has reasoning, a tool call and a long reply; return all screens."""
    chat = desk.chats
    chat.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.fn['repeat']({ 'text' }, 6))")
    chat.nvim.command("silent! 5 | split")
    with chat_of(desk, given) as chat:
        nvim = chat.nvim
        found = [nvim.request("nvim_get_mode")["mode"], nvim.screen()]
        nvim.feed("<Esc>")
        items = tuple(events.ContextItem(id=f"i{n}", kind="file", label=f"file{n}.py") for n in range(3))
        chat.push(events.ContextItems(items=items))
        chat.push(
            events.Meter(tokens=64_000, window=128_000, ratio=0.5, exact=True, edit_at=83_000, compact_at=108_000)
        )
        chat.accept("Where is the pencil?", tokens=2100, number=1)
        chat.push(
            events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Reasoning(text="I look for it.\nTwice.")
        )
        chat.push(events.ToolStarted(call_id="c1", name="read_file", title="read_file pencil.py"))
        done = {"name": "read_file", "title": "read_file pencil.py", "summary": "2 lines", "preview": "one\ntwo"}
        chat.push(events.ToolFinished(call_id="c1", message_id="t1", status="ok", **done))
        found.append(nvim.screen())
        nvim.feed("gg")
        nvim.settle()
        found.append(nvim.screen())
        nvim.feed("G")
        nvim.settle()
        chat.push(events.Text(text="".join(f"line {n} {'word ' * 40}\n\n" for n in range(60))))
        chat.push(
            events.ReplyFinished(message_id="r", stop="stop", output_tokens=999), events.TurnFinished(reason="done")
        )
        nvim.settle()
        found += [nvim.screen(), nvim.request("nvim_exec2", "ls", {"output": True})["output"]]
        return [steady_numbers(str(text)) for text in found]


def steady_numbers(text: str) -> str:
    """Return the text without buffer numbers, which keep increasing."""
    return re.sub(r"^ *\d+ |chat \d+|\[\d+\]|#\d+|c//[0-9a-f]+", "~", text, flags=re.MULTILINE)


def unseen(desk: Desk, given: Given) -> Any:
    """Let a turn end in a chat that is not visible."""
    with chat_of(desk, given) as chat:
        chat.nvim.lua("_G.told = {} _G.notify = vim.notify vim.notify = function(text) table.insert(_G.told, text) end")
        chat.accept("Where is the pencil?")
        chat.nvim.command("enew")
        chat.reply("There.")
        chat.nvim.settle()
        return steady_numbers(str(chat.nvim.lua("vim.notify = _G.notify return _G.told")))


def mentioned(desk: Desk, given: Given) -> Any:
    """Mention each editor context item, with and without an argument, and complete its name."""
    with chat_of(desk, given) as chat:
        offered = chat.nvim.lua(MENTION_ALL)
        chat.nvim.lua(
            "local over = false vim.defer_fn(function() over = true end, 30) vim.wait(5000, function() return over end)"
        )
        return offered, chat.sent("submit"), chat.sent("editor_context")


MENTION_ALL = """
local taken = require("codecompanion.editor_context")
local host = require("codecompanion.host")
local chat = require("codecompanion.chat").last_chat()
return _G.options_test.mention_all(function(text)
  local items, later, problem = taken.take(text, { id = chat.id, bufnr = chat.bufnr })
  host.notify("submit", { text = text, items = items, problem = problem })
  if later then
    later(function(late) host.notify("editor_context", { items = late }) end)
  end
end)
"""


def decided(desk: Desk, given: Given) -> Any:
    """Press every key of a proposed change and of an edit in place, and <F5>."""
    with chat_of(desk, given) as chat:
        chat.nvim.lua("_G.options_test.show_proposal()")
        return chat.nvim.lua("return _G.options_test.press_all()")


def commanded(desk: Desk, given: Given) -> Any:
    """Type the slash command `/mine`, with and without an argument, and complete it."""
    with chat_of(desk, given) as chat:
        found = []
        for typed in ("/min", "/mine ", "/mine pe"):
            code = """local chat = require("codecompanion.chat").last_chat()
                      local row = vim.api.nvim_buf_line_count(chat.bufnr) - 1
                      vim.api.nvim_buf_set_lines(chat.bufnr, row, row + 1, true, { ... })
                      return { require("codecompanion.chat.ui.complete_input").items(chat, row, ...) }"""
            found.append(chat.nvim.lua(code, typed))
        for text in ("/mine", "/mine pencil", "/mine one\ntwo"):
            chat.nvim.lua("_G.options_test.pressed = {}")
            chat.nvim.lua(
                """local chat = require('codecompanion.chat').last_chat()
                   require('codecompanion.chat.wire.draft').set(chat, ...)
                   require('codecompanion.chat.ui.submit').send(chat)""",
                text,
            )
            chat.nvim.settle()
            found.append([chat.nvim.lua("return _G.options_test.pressed"), chat.input()])
        return found, [one["text"] for one in chat.sent("submit")]
