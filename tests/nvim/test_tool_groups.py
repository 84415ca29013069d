"""Choosing tools in a real chat: `@{files}` in a message, its line in the context block, `dd`, `u`, `/tools`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from chat_driver import ChatDriver
from harness import Nvim
from real_chat import KEY, start_chat
from test_help_recipes import snippet
from test_own_slash import offered as completed
from test_own_tools import offered, start, tools
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

Factory = Callable[..., Nvim]
READ_ONLY = {"read_file", "file_search", "grep_search", "code_search", "get_diagnostics"}


def test_a_group_is_chosen_shown_removed_and_restored(nvim_factory: Factory, tmp_path: Path) -> None:
    with ChatServerThread([reply("ok")] * 5, key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("hello")
        everything = set(offered(server))
        assert everything > READ_ONLY
        chat.say("look with @{read_only}")
        assert set(offered(server)) == READ_ONLY
        chat.nvim.wait_screen(r"<group>read_only</group>.* 5 tools")
        chat.nvim.feed("ggjdd")
        chat.nvim.wait_for(lambda: "<group>" not in chat.text(), "no line")
        chat.nvim.feed("u")
        chat.nvim.wait_for(lambda: "<group>read_only</group>" in chat.text(), "the line again")
        chat.say("again")
        assert set(offered(server)) == READ_ONLY
        chat.nvim.feed("ggjdd")
        chat.nvim.wait_for(lambda: "<group>" not in chat.text(), "no line")
        chat.say("and now?")
        assert set(offered(server)) == everything


def test_a_narrow_list_keeps_the_cost_of_tools(nvim_factory: Factory, tmp_path: Path) -> None:
    """In 40 columns, names are shortened in the middle, figures are complete, and nothing is cut to a few letters."""
    own = "look_up_in_the_reference_of_it = { description = 'Look it up.', callback = function() end }"
    with ChatServerThread([reply("ok")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, tools(own), size=(40, 30))
        chat.send("/tools")
        chat.nvim.wait_screen(r"● look_up_in_t…\S*of_it +\d+ tokens *│")
        rows = [line for line in chat.nvim.screen().split("\n") if re.search("│[●○] .*tokens", line)]
        assert len(rows) > 5
        assert all(re.search(r" [\d.k]+ tokens *│", row) for row in rows), rows
        chat.nvim.request("nvim_ui_try_resize", 110, 30)
        chat.nvim.wait_screen(r"run_command +\d+ tokens +· asks · Run a shell")


def test_the_list_shows_the_cost_of_each_tool_and_toggles_it(nvim_factory: Factory, tmp_path: Path) -> None:
    with ChatServerThread([reply("ok")] * 3, key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.send("/tools")
        screen = chat.nvim.wait_screen("Tools of this chat")
        assert "● run_command" in screen
        assert re.search(r"○ recall .*offered once something has", screen)
        assert "asks" in screen
        assert "tokens are sent with each request · as configured" in screen
        chat.nvim.feed("/● run_command<CR><CR>")
        chat.nvim.wait_screen("○ run_command")
        chat.nvim.wait_screen("chosen in this chat")
        chat.nvim.feed("q")
        chat.nvim.wait_screen("<tool>without run_command</tool>")
        chat.say("x")
        assert "run_command" not in offered(server)
        chat.send("/tools memory")
        chat.nvim.wait_screen(r"1 tool offered in this chat, about")
        chat.say("y")
        assert set(offered(server)) == {"memory"}
        chat.send("/tools nonsense")
        chat.nvim.wait_screen("no tool or group named nonsense")
        assert chat.draft() == "/tools nonsense"


def test_a_chat_begins_with_the_group_in_the_help(nvim_factory: Factory, tmp_path: Path) -> None:
    with ChatServerThread([reply("ok")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, snippet("codecompanion-tool-groups"))
        chat.say("x")
        assert set(offered(server)) == {"read_file", "grep_search", "run_command"}
        system = server.requests[-1].json["messages"][0]["content"]
        assert "\n\nYou review code. Change nothing.\n\nThe user's environment:" in system


def test_tool_names_are_completed_beside_files(chat: ChatDriver) -> None:
    (chat.nvim.root / "work" / "filed.txt").write_text("x")
    chat.answer(
        "list_tools",
        {
            "tools": [{"name": "file_search", "description": "."}, {"name": "late", "description": "Later. More."}],
            "groups": [
                {"name": "files", "description": "Files.", "tools": ["file_search"], "state": "", "short": ""},
                {"name": "mcp:filed", "description": "", "tools": [], "state": "not started", "short": "filed"},
            ],
        },
    )
    found = completed(chat, "use @fil")
    assert found[:3] == ["@filed.txt", "@{files}", "@{file_search}"]  # before the host has said anything
    chat.nvim.wait_for(lambda: completed(chat, "@{la") == ["@{late}"], "what the host has")
    assert completed(chat, "use @{fi") == ["@{files}", "@{mcp:filed}", "@{file_search}"]
    assert completed(chat, "use @{mcp:f") == ["@{mcp:filed}"]
    assert completed(chat, "a@{la") == []
