"""An evening of customisation: a command, a tool in Lua, a tool group, and the list of tools, in a terminal."""

from __future__ import annotations

import re

import pytest

from tests.journeys.chat import BUSY, READY, approve, command, quit_all, say, send
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.thread import ChatServerThread

pytestmark = pytest.mark.slow("a journey in a real terminal")

KEY = "sk-planted-7f3a9c51d2e84b06"
MINE = """
local setup = require("codecompanion").setup
require("codecompanion").setup = function(options)
  local tools = {
    count_lines = {
      description = "Count the lines of a file.",
      schema = { type = "object", properties = { path = { type = "string" } }, required = { "path" } },
      callback = function(arguments, context)
        return #vim.fn.readfile(context.root .. "/" .. arguments.path) .. " lines"
      end,
    },
    groups = { counting = { description = "Counts.", tools = { "count_lines", "read_file" } } },
  }
  local commands = {
    todo = { description = "My list", callback = function(chat) chat:attach("todo", "- water the plants") end },
  }
  setup(vim.tbl_deep_extend("force", options, {
    interactions = { chat = { tools = tools, slash_commands = commands } },
  }))
end
"""


def test_a_users_own_tool_group_and_command_work(desk: Desk) -> None:
    """The tool is approved, run and read by the model.

    It is chosen, counted, switched and attached like a built-in tool.
    """
    lay_out(desk)
    call = Call("count_lines", '{"path": "src/stack.py"}', id="a")
    answers = [reply(calls=[call]), reply("It is short."), reply("Plants first.")]
    with ChatServerThread(answers, key=KEY) as server:
        desk.configure(server.url, before=MINE)
        terminal = desk.nvim(size=(110, 34))
        command(terminal, "CodeCompanionChat", READY)
        send(terminal, "how long is it? @{counting}")
        approve(terminal)
        screen = terminal.wait("It is short", gone=BUSY)
        assert "<group>counting</group>" in screen
        assert re.search(r"count_lines src/stack\.py · ", screen), screen
        sent = server.requests[-1].json
        assert sorted(tool["function"]["name"] for tool in sent["tools"]) == ["count_lines", "read_file"]
        assert re.fullmatch(r"\d+ lines", sent["messages"][-1]["content"])
        send(terminal, "/tools")
        screen = terminal.wait("Tools of this chat")
        assert re.search(r"● count_lines .*your configuration", screen), screen
        assert "○ run_command" in screen
        terminal.keys("q")
        send(terminal, "/todo")
        terminal.wait("<text>todo</text>")
        say(terminal, "what now?", "Plants first")
        assert "water the plants" in str(server.requests[-1].json["messages"])
        quit_all(terminal)
