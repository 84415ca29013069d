"""A real Neovim with the real host and the loopback Chat Completions server: the whole path of a message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from codecompanion.model.history import LogEvent
from codecompanion.model.view import View, project
from codecompanion.store.opening import open_store
from harness import NO_PROVIDER, NO_READING, Nvim, lua_string
from tests.forked_python import forked_python, process_of
from tests.providers.loopback.server import LoopbackServer

WAITS = "Not loaded until trusted"
KEY = "sk-planted-7f3a9c51d2e84b06"


def init_lua(
    url: str,
    options: dict[str, Any] | None = None,
    opts: dict[str, Any] | None = None,
    extends: str = "openai_compatible",
    model: str = "test-model",
    python: str = "",
) -> str:
    """Return an init file whose chats use the server at `url`; `options` override it key by key.

    The host is forked (see `tests/forked_python.py`) unless `python` is given. Each message of the chat is a separate
    message in the request, as the tests expect; `tests/nvim/test_turns_in_a_row.py` covers the merging of messages.
    """
    apart = {"alternate_roles": False} if extends == "openai_compatible" else {}
    # The window is set below, and the server is not asked which one it is, so that tests can count its requests.
    named = (
        {"limits_endpoint": "/v1/props"}
        if extends == "openai_compatible" and "context_window" not in (opts or {})
        else {}
    )
    config: dict[str, Any] = {
        "python": {"host_prog": python or forked_python()},
        "adapters": {
            "http": {
                "loop": {
                    "extends": extends,
                    "formatted_name": "Loop",
                    "env": {"url": url.removesuffix("/v1"), "api_key": "LOOP_KEY", **named},
                    "schema": {"model": {"default": model}},
                    "opts": {"context_window": 128_000, "max_retries": 2, **apart, **(opts or {})},
                }
            }
        },
        "interactions": {"chat": {"adapter": "loop"}},
        "display": {"chat": {"window": {"layout": "buffer"}}},
    }
    text = lua_string(json.dumps(config))
    more = lua_string(json.dumps(options or {}))
    return (
        f"vim.o.termguicolors = true\n{NO_PROVIDER}{NO_READING}"
        f"require('codecompanion').setup(vim.tbl_deep_extend('force', vim.json.decode({text}),"
        f" vim.json.decode({more})))\n"
    )


class RealChat:
    """One chat as seen by its user."""

    def __init__(self, nvim: Nvim, root: Path) -> None:
        """Use a Neovim whose init is `init_lua`."""
        self.nvim, self.root = nvim, root

    def open(self) -> None:
        """Open a chat and wait until the host has answered."""
        self.nvim.command("CodeCompanionChat")
        self.wait_ready()

    def wait_ready(self) -> None:
        self.nvim.wait_lua("return vim.b.codecompanion_chat and vim.b.codecompanion_chat.meter ~= nil")

    @property
    def id(self) -> str:
        """Return the chat's id."""
        return str(self.nvim.lua("return require('codecompanion.chat').current().id"))

    def type(self, text: str) -> None:
        """Type into the input region."""
        self.nvim.feed("Gi" + text.replace("<", "<lt>").replace("\n", "<CR>") + "<Esc>")

    def put(self, text: str) -> None:
        """Put a text into the input at once; typing a long one takes longer than the test."""
        self.nvim.lua(
            """local text = ...
               require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').current(), text)""",
            text,
        )

    def send(self, text: str) -> None:
        """Type a message and press <CR>."""
        self.type(text)
        self.nvim.feed("<CR>")

    def wait_state(self, *states: str) -> None:
        """Wait until the chat is in one of the states; if it waits for the user, until the question is visible."""
        self.nvim.wait_for(lambda: self.nvim.lua(IS_IN, states), f"state {states}")

    def approve(self, text: str | None = None) -> None:
        """Approve the waiting call once its block is shown; `text` is the proposal as edited by the user."""
        self.nvim.wait_lua("return #require('codecompanion.chat').current().approvals > 0")
        self.nvim.lua(
            """local chat, text = require('codecompanion.chat').current(), ...
               require('codecompanion.host').notify('approve', {
                 chat = chat.id, call_id = chat.approvals[1].call_id, decision = 'once', reason = '', text = text,
               })""",
            *([] if text is None else [text]),
        )

    def press_on_approval(self, keys: str) -> None:
        """Go to the pending approval, once its block is drawn and unanswered, and press keys there."""
        self.nvim.wait_lua(HAS_QUESTION)
        self.nvim.feed("]a" + keys)

    def trust(self, *words: str) -> None:
        """Decide with `:CodeCompanion trust …`; return when the chat no longer reports waiting files."""
        self.nvim.command(" ".join(("CodeCompanion trust", *(words or ("folder",)))))
        self.nvim.wait_for(lambda: WAITS not in self.text(), "trust")

    def job_pid(self) -> int:
        """Return the pid of the host's job, as known to Neovim."""
        return int(self.nvim.lua("return require('codecompanion.host').inspect().pid"))

    def host_pid(self) -> int:
        """Return the pid of the host, for stopping, killing or inspecting it."""
        return process_of(self.job_pid())

    def state(self) -> str:
        return str(self.nvim.lua("return (vim.b.codecompanion_chat or {}).state or ''"))

    def say(self, text: str) -> None:
        """Send a message and wait until the turn is over."""
        # The end of an earlier turn may still be on its way: only an end after this message was sent counts, or one
        # that gave the message back.
        before, sent = self.finished(), int(self.nvim.lua("return _G.cc_sent"))
        self.send(text)
        self.nvim.wait_for(
            lambda: self.nvim.lua("return _G.cc_ended_at > ...", sent) or (self.finished() > before and self.draft()),
            f"the end of the turn of {text!r}",
        )

    def finished(self) -> int:
        """Return the number of finished turns."""
        return int(self.nvim.lua("return _G.cc_turns or 0"))

    def text(self) -> str:
        """Return the whole buffer."""
        return "\n".join(self.nvim.lines())

    def health(self) -> str:
        """Return the output of `:checkhealth codecompanion` as one line."""
        self.nvim.command("checkhealth codecompanion")
        text = " ".join(" ".join(self.nvim.lines()).split())
        self.nvim.command("bwipeout!")
        return text

    def draft(self) -> str:
        """Return the text in the input region."""
        return str(
            self.nvim.lua(
                "local c = require('codecompanion.chat').current()"
                " return require('codecompanion.chat.buffer.chat_text').input_text(c)"
            )
        )

    def log(self) -> list[LogEvent]:
        """Return the stored events of the chat."""
        return read_log(self.root, self.id)

    def view(self) -> View:
        """Return the stored view of the chat."""
        return project(self.log())


IS_IN = """
local shown = vim.b.codecompanion_chat
if not shown or not vim.tbl_contains(..., shown.state) then return false end
local chat = require("codecompanion.chat").current()
if shown.state == "awaiting_approval" and #chat.approvals == 0 then return false end
return shown.state ~= "idle" and shown.state ~= "awaiting_approval" or not chat.queue.scheduled
"""

HAS_QUESTION = """
local chat = require("codecompanion.chat").current()
return chat ~= nil and vim.iter(chat.approvals):any(function(approval) return not approval.answered end)
"""

COUNT_TURNS = """
_G.cc_turns, _G.cc_edits, _G.cc_sent, _G.cc_ended_at = 0, 0, 0, 0
vim.api.nvim_create_autocmd("User", {
  pattern = "CodeCompanionChatSubmitted",
  callback = function() _G.cc_sent = _G.cc_sent + 1 end,
})
vim.api.nvim_create_autocmd("User", {
  pattern = "CodeCompanionChatEdited",
  callback = function() _G.cc_edits = _G.cc_edits + 1 end,
})
vim.api.nvim_create_autocmd("User", {
  pattern = { "CodeCompanionChatDone", "CodeCompanionChatStopped" },
  callback = function()
    _G.cc_turns = _G.cc_turns + 1
    _G.cc_ended_at = _G.cc_sent
  end,
})
"""


def read_log(root: Path, chat: str) -> list[LogEvent]:
    """Return the stored events of a chat below a test's root."""
    store = open_store(root / "data" / "nvim" / "codecompanion")
    try:
        return store.load_events(chat)
    finally:
        store.close()


def start_chat(
    nvim_factory: Callable[..., Nvim],
    root: Path,
    server: LoopbackServer,
    *,
    extends: str = "openai_compatible",
    model: str = "test-model",
    options: dict[str, Any] | None = None,
    opts: dict[str, Any] | None = None,
    files: Iterable[tuple[str, str]] = (),
    trusted: bool = False,
    key: str = KEY,
    env: dict[str, str] | None = None,
    opened: bool = True,
    python: str = "",
    **nvim_options: Any,
) -> RealChat:
    """Start Neovim in a workspace with these files and open a chat; `trusted`: the user's configuration trusts it."""
    work = root / "work"
    work.mkdir(exist_ok=True)
    if trusted:
        options = {"trust": {"folders": [str(work)]}, **(options or {})}
    for name, content in files:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(content, encoding="utf-8")
    init = init_lua(server.url, options, opts, extends, model, python) + COUNT_TURNS
    nvim = nvim_factory(root=root, init=init, env={"LOOP_KEY": key, **(env or {})}, **nvim_options)
    chat = RealChat(nvim, root)
    if opened:
        chat.open()
    return chat
