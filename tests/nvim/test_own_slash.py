"""A user's own slash commands: `interactions.chat.slash_commands`, and groups added later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chat_driver import ChatDriver, make_chat
from harness import Nvim
from test_chat_slash import send

Factory = Callable[..., Nvim]


def configured(nvim_factory: Factory, commands: str) -> ChatDriver:
    """Return an open chat; `commands` is the Lua of `slash_commands`."""
    chat = make_chat(nvim_factory, options={})
    chat.nvim.lua(
        f"require('codecompanion').setup({{ interactions = {{ chat = {{ slash_commands = {commands} }} }} }})"
    )
    chat.open()
    return chat


def problems(chat: ChatDriver) -> list[str]:
    """Return the mistakes in the configuration."""
    chat.nvim.settle()
    return list(chat.nvim.lua("return require('codecompanion.config').findings().problems"))


def offered(chat: ChatDriver, typed: str) -> list[str]:
    """Return the completion items after a text in the first line of the input."""
    return list(
        chat.nvim.lua(
            """local chat = require('codecompanion.chat').last_chat()
               local row = require('codecompanion.chat.buffer.anchors').position(chat, 'input')
               local _, items = require('codecompanion.chat.ui.complete_input').items(chat, row, ...)
               return vim.tbl_map(function(item) return item.word end, items)""",
            typed,
        )
    )


def test_a_users_command_attaches_inserts_and_notifies(nvim_factory: Factory) -> None:
    chat = configured(
        nvim_factory,
        """{ todo = { description = "My list", argument = "[word]",
               complete = function(lead) return { lead .. "one", lead .. "two" } end,
               callback = function(chat, argument)
                 chat:attach("todo", "- " .. argument)
                 chat:add_context({ role = "user", content = "theirs" }, "git", "<log>")
                 chat:say("Done with " .. argument .. ".")
                 return "about " .. argument
               end } }""",
    )
    assert problems(chat) == []
    assert offered(chat, "/tod") == ["/todo"]
    assert offered(chat, "/todo x") == ["xone", "xtwo"]
    send(chat, "/todo milk")
    attached = [(one["kind"], one["path"], one["text"]) for one in chat.sent("attach")]
    assert attached == [("text", "todo", "- milk"), ("text", "log", "theirs")]
    assert "Done with milk." in chat.text()
    assert chat.input() == "about milk"
    assert chat.sent("submit") == []
    send(chat, "/help")
    chat.nvim.feed("g?")
    chat.nvim.wait_screen("Keys and commands")
    shown = chat.nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    assert any("/todo [word]" in line and "My list" in line for line in shown)


def test_a_users_command_can_send_a_message(nvim_factory: Factory) -> None:
    chat = configured(nvim_factory, "{ ask = { callback = function(chat) chat:send('Why?') end } }")
    send(chat, "/ask")
    assert [one["text"] for one in chat.sent("submit")] == ["Why?"]
    assert chat.input() == ""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("error('no luck')", "no luck"),
        ("return { 1 }", "/bad returned table; expected a string for the input, or nothing."),
        ("chat:attach('x')", "text: got nil; expected a string"),
    ],
)
def test_a_failing_command_is_reported_and_stays_in_the_input(nvim_factory: Factory, body: str, said: str) -> None:
    chat = configured(nvim_factory, f"{{ bad = {{ callback = function(chat) {body} end }} }}")
    send(chat, "/bad")
    assert said in " ".join(chat.text().split())
    assert chat.input() == "/bad"


def test_a_command_can_be_disabled(nvim_factory: Factory) -> None:
    chat = configured(
        nvim_factory,
        "{ image = false, cost = { enabled = function() return false end }, trace = { enabled = false } }",
    )
    assert problems(chat) == []
    for name in ("image", "cost", "trace"):
        assert offered(chat, f"/{name}") == []
    send(chat, "/image x.png")
    assert "No command /image" in chat.text()


@pytest.mark.parametrize(
    ("commands", "problem"),
    [
        (
            "{ file = { callback = function() end } }",
            "file: a built-in command has this name; choose another one",
        ),
        ("{ mine = { description = 'x' } }", "mine: `callback` is missing; no built-in command has this name"),
        ("{ nope = false }", "nope: no built-in command has this name"),
        (
            "{ ['a b'] = { callback = function() end } }",
            "a b: a name must be a letter, then letters, digits, `_` or `-`",
        ),
        ("{ mine = { callback = 'x' } }", 'mine.callback: got "x"; expected function'),
    ],
)
def test_a_mistake_is_named_and_affects_only_that_command(nvim_factory: Factory, commands: str, problem: str) -> None:
    chat = configured(nvim_factory, commands)
    assert f"interactions.chat.slash_commands.{problem}" in problems(chat)
    assert "/file" in offered(chat, "/")
    send(chat, "/file missing.txt")
    assert "no readable file missing.txt" in chat.text()


def test_options_of_codecompanion_nvim_are_not_mistakes(nvim_factory: Factory) -> None:
    chat = configured(
        nvim_factory,
        "{ opts = { acp = {} }, file = { opts = { provider = 'fzf' } }, now = { opts = { keymaps = {} } } }",
    )
    assert problems(chat) == []
    foreign = chat.nvim.lua("return require('codecompanion.config').findings().foreign")
    assert len(foreign) == 3


def test_groups_can_be_added_later_and_fail_alone(nvim_factory: Factory) -> None:
    """Prompts and servers add commands: the first of two with the same name wins, and a failing group is named."""
    chat = configured(nvim_factory, "{ mine = { callback = function() return 'mine' end } }")
    chat.nvim.lua(
        """local registry = require('codecompanion.chat.slash.slash_registry')
           local function made(name)
             return { name = name, description = name, run = function(chat) vim.g.ran = name end }
           end
           registry.add("the server demo", function()
             return { made("mcp:demo"), made("mine"), made("help") }
           end)
           registry.add("the broken one", function() error("boom") end)"""
    )
    assert offered(chat, "/mcp:") == ["/mcp:demo"]
    send(chat, "/mcp:demo")
    assert chat.nvim.lua("return vim.g.ran") == "mcp:demo"
    send(chat, "/mine")
    assert chat.input() == "mine"
    chat.nvim.lua("require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').last_chat(), '')")
    send(chat, "/mcp:dmo")
    assert "No command /mcp:dmo; did you mean /mcp:demo?" in chat.text()
    send(chat, "/foo:bar is text")
    assert [one["text"] for one in chat.sent("submit")] == ["/foo:bar is text"]
    messages = chat.nvim.lua("return vim.api.nvim_exec2('messages', { output = true }).output")
    assert "/mine of the server demo is left out" in messages
    assert "The slash commands of the broken one are missing" in messages
