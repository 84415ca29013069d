"""A project with an MCP server: trusted, called with approval, shown on its page, ended with Neovim."""

from __future__ import annotations

import json
import sys
import time

import pytest

from real_chat import KEY
from tests.journeys.chat import approve, command, open_chat, quit_all, send
from tests.journeys.desk import Desk
from tests.mcp.listener import HOSTILE, is_alive, recorded
from tests.patience import PATIENCE_S
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.thread import ChatServerThread

pytestmark = pytest.mark.slow("a journey in a real terminal")


def test_a_projects_server_is_used(desk: Desk) -> None:
    """From the notice through trust, an approved call, its result and the page to the exit; no process remains."""
    record, own_pid = (
        desk.project.parent / "record",
        desk.project.parent / "pid",
    )  # otherwise they would be part of the trusted files
    run = f"echo $$ > {own_pid}; RECORD={record} exec {sys.executable} {HOSTILE}"
    entry = {"command": "sh", "args": ["-c", run]}
    desk.write(".mcp.json", json.dumps({"mcpServers": {"notes": entry}}))
    call = reply(calls=[Call("notes__echo", json.dumps({"text": "water the plants"}), "c1")])
    with ChatServerThread([call, reply("It says: water the plants.")], key=KEY) as server:
        desk.configure(server.url, {"trust": {}})
        terminal = desk.nvim(size=(100, 40))
        open_chat(terminal)
        terminal.wait(r"Not loaded until trusted: \.mcp\.json · gtr to review")
        terminal.keys("<Esc>:lua require('codecompanion.pages.trust_page').UNREAD_MS = 0<CR>")
        terminal.keys("gtr")
        screen = terminal.wait(r"· \.mcp\.json · starts 1 MCP server: notes")
        assert not record.exists()
        terminal.keys("T")
        terminal.wait(r"Trusted: \S+\. 1 file in it may be used")

        send(terminal, "what do my notes say?")
        screen = terminal.wait("echo of the MCP server")
        assert "water the plants" in screen
        approve(terminal)
        screen = terminal.wait(r"It says: water the plants\.")
        assert "notes__echo water the plants" in screen

        screen = command(terminal, "CodeCompanion mcp", r"notes · ready · 5 of 5 tools")
        assert "from .mcp.json" in screen
        terminal.keys("q")
        pid = int(own_pid.read_text())
        assert is_alive(pid)
        quit_all(terminal)
        deadline = time.monotonic() + PATIENCE_S
        while is_alive(pid):
            assert time.monotonic() < deadline, "the server outlived Neovim"
            time.sleep(0.05)
        assert [one["params"]["name"] for one in recorded(record) if one.get("method") == "tools/call"] == ["echo"]
