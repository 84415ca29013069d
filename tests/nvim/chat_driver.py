"""Drives a chat buffer in a real Neovim with the fake host, using the wire's event types."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.wire import events
from harness import NO_PROVIDER, NO_READING, Nvim, lua_string

FAKE_HOST = Path(__file__).with_name("fake_host.lua")

INIT = f"""
{NO_PROVIDER}{NO_READING}vim.o.termguicolors = true
package.preload["codecompanion.host"] = function() return dofile({lua_string(str(FAKE_HOST))}) end
"""


class ChatDriver:
    """One chat: pushes typed events, reads the requests, and returns the buffer."""

    def __init__(self, nvim: Nvim) -> None:
        """Use a Neovim whose init began with `INIT`."""
        self.nvim = nvim
        self.id = ""

    def setup(self, options: dict[str, Any]) -> None:
        """Configure the plugin."""
        self.nvim.lua("require('codecompanion').setup(...)", options)

    def open(self, *, opened: bool = True, **fields: Any) -> str:
        """Open a chat and, unless told otherwise, let the host answer `chat_opened`; return its id."""
        self.id = self.nvim.lua(
            "return require('codecompanion.chat').open(...).id", fields.pop("opts", {"hidden": False})
        )
        self.nvim.wait_for(lambda: any(one["chat"] == self.id for one in self.sent("open_chat")), "open_chat")
        if opened:
            self.opened(**fields)
        return self.id

    def opened(self, **fields: Any) -> None:
        """Make the host report that the chat is open."""
        given = {"title": "", "adapter": "openai", "model": "gpt-4o", "window": 128000, "policy": "codecompanion"}
        self.push(events.ChatOpened(chat=self.id, **(given | fields)))

    def push(self, *batch: events.Event) -> None:
        """Hand a batch of events to Lua and wait until they are drawn."""
        self.push_soon(*batch)
        self.drain()

    def push_soon(self, *batch: events.Event) -> None:
        """Hand a batch of events to Lua without waiting."""
        objects = [msgspec.to_builtins(event) for event in batch]
        for item in objects:
            item["chat"] = item["chat"] or self.id
        self.nvim.lua("require('codecompanion.host').on_events(...)", json.dumps(objects, ensure_ascii=False))

    def drain(self) -> None:
        """Wait until every chat has drawn its events."""
        self.nvim.wait_lua(
            """for _, chat in ipairs(require('codecompanion.chat').list()) do
                 if chat.queue.scheduled or chat.restore.running then return false end
               end
               return true"""
        )

    def sent(self, verb: str) -> list[dict[str, Any]]:
        """Return the payloads of the requests with this verb."""
        return list(self.nvim.lua("return require('codecompanion.host').sent(...)", verb))

    def answer(self, verb: str, result: Any) -> None:
        """Answer requests with this verb from now on."""
        self.nvim.lua(
            """local verb, json = ...
               require('codecompanion.host').answers[verb] = function() return vim.json.decode(json) end""",
            verb,
            json.dumps(result),
        )

    def input(self) -> str:
        """Return the text of the input region."""
        return str(
            self.nvim.lua(
                "local text = require('codecompanion.chat.buffer.chat_text') "
                "return text.input_text(require('codecompanion.chat').last_chat())"
            )
        )

    def text(self) -> str:
        """Return the text of the chat buffer."""
        lines = self.nvim.lua(
            "return vim.api.nvim_buf_get_lines(require('codecompanion.chat').last_chat().bufnr, 0, -1, false)"
        )
        return "\n".join(lines)

    def toggle_fold(self, text: str) -> None:
        """Put the cursor on the first line with `text` (a search would open folds) and press the fold key."""
        row = next(number for number, line in enumerate(self.text().split("\n"), 1) if text in line)
        self.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row)
        self.nvim.feed("<Tab>")

    def submit(self, text: str) -> int:
        """Type `text` into the input and send it; return the submit id."""
        self.nvim.lua(
            """local chat = require('codecompanion.chat').last_chat()
               require('codecompanion.chat.wire.draft').set(chat, ...)
               require('codecompanion.chat.ui.submit').send(chat)""",
            text,
        )
        return int(self.sent("submit")[-1]["submit_id"])

    def accept(self, text: str, cycle: int = 1, tokens: int = 0, number: int = 0) -> str:
        """Send `text` and let the host store it; return the message id."""
        submit_id = self.submit(text)
        sent = events.MessageSent(
            submit_id=submit_id, message_id=f"m{submit_id}", text=text, cycle=cycle, tokens=tokens, number=number
        )
        self.push(sent)
        return sent.message_id

    def reply(self, text: str, *, end: bool = True, message_id: str = "r") -> None:
        """Stream a whole reply."""
        self.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text=text))
        if end:
            self.push(events.ReplyFinished(message_id=message_id, stop="stop"), events.TurnFinished(reason="done"))

    def record_autocmds(self) -> None:
        """Record User autocmds in `_G.fired` as `[pattern, data]`."""
        self.nvim.lua(
            """_G.fired = {}
               vim.api.nvim_create_autocmd('User', { pattern = 'CodeCompanion*', callback = function(args)
                 table.insert(_G.fired, { args.match, args.data })
               end })"""
        )

    def fired(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the autocmds that fired since `record_autocmds`."""
        return [(name, data) for name, data in self.nvim.lua("return _G.fired")]


def make_chat(factory: Callable[..., Nvim], *, options: dict[str, Any] | None = None, **start: Any) -> ChatDriver:
    """Start Neovim with the fake host and open a chat."""
    chat = ChatDriver(factory(init=INIT + start.pop("init", ""), **start))
    chat.setup({"display": {"chat": {"window": {"layout": "buffer"}}}} if options is None else options)
    chat.open()
    return chat
