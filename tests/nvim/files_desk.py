"""A chat whose model calls one tool per message, next to the user's files: real Neovim, host and files."""

from __future__ import annotations

import json
from typing import Any

from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.thread import ChatServerThread

TEXT = "".join(f"line {number}\n" for number in range(1, 41))


def tool(name: str, **arguments: Any) -> Any:
    """Return the reply of a model that calls one tool."""
    return reply(calls=[Call(name, json.dumps(arguments), "c1")])


def edit_call(path: str, old: str, new: str, call_id: str = "c1") -> Call:
    """Return an edit call; `call_id` distinguishes several in one reply."""
    return Call("insert_edit", json.dumps({"path": path, "old_text": old, "new_text": new}), call_id)


def edit(old: str, new: str, path: str = "a.txt") -> Any:
    return reply(calls=[edit_call(path, old, new)])


class Desk:
    """A chat in one tab, the user's files in another one, and a model that calls one tool per message."""

    def __init__(self, nvim_factory, root, answers, options=None, files=(("a.txt", TEXT),), before="", **more):
        scripted = [one for answer in answers for one in (answer, reply("Done."))]
        self.thread = ChatServerThread(scripted, key=KEY)
        self.server = self.thread.__enter__()
        self.root = root / "work"
        chosen = {"interactions": {"chat": {"tools": {"opts": {"yolo": True, **(options or {})}}}}}
        self.chat: RealChat = start_chat(nvim_factory, root, self.server, options=chosen, files=files, **more)
        self.nvim = self.chat.nvim

    def results(self) -> list[str]:
        """Return the tool results sent to the model, oldest first."""
        return [message.text for message in self.chat.view().messages if message.role == "tool"]

    def open(self, name: str = "a.txt", split: bool = False) -> int:
        """Open a file in its own tab, next to the chat; return its buffer."""
        self.nvim.command(("split " if split else "tabedit ") + name)
        return int(self.nvim.lua("return vim.api.nvim_get_current_buf()"))

    def say(self, text: str = "go") -> None:
        """Send a message with the chat in its own tab, then return to the user's tab."""
        tab = self.nvim.lua("return vim.api.nvim_get_current_tabpage()")
        self.nvim.command("tabfirst")
        self.chat.say(text)
        self.nvim.lua("vim.api.nvim_set_current_tabpage(...)", tab)

    def say_and_approve(self, text: str) -> None:
        """Send a message with the chat in front, and approve the one call that asks."""
        self.chat.send(text)
        self.chat.wait_state("awaiting_approval")
        self.chat.approve()
        self.chat.wait_state("idle")

    def disk(self, name: str = "a.txt") -> str:
        return (self.root / name).read_bytes().decode()

    def lines(self, buffer: int) -> list[str]:
        return list(self.nvim.lines(buffer))

    def is_modified(self, buffer: int) -> bool:
        return bool(self.nvim.lua("return vim.bo[...].modified", buffer))
