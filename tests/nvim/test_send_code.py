"""`opts.send_code = false`: typed text is sent but code never is, in any way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Nvim
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.server import ChatServer
from tests.providers.chat.thread import ChatServerThread

SECRET = "launch_code_7431"
"""Appears in the file, but in no name and in no typed text."""
OFF = {"opts": {"send_code": False}}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Yield a fake provider."""
    with ChatServerThread([reply("Fine.")], key=KEY) as running:
        yield running


def start(nvim_factory: Callable[..., Nvim], root: Path, server: ChatServer, **more: object) -> RealChat:
    """Open a chat next to a file with code, with sending code disabled."""
    options = {**OFF, **more.pop("options", {})}  # type: ignore[dict-item]
    files = [("a.lua", f"local x = '{SECRET}'\nreturn x\n")]
    return start_chat(nvim_factory, root, server, options=options, files=files, size=(150, 40), **more)


def sent(server: ChatServer) -> str:
    """Return everything sent to the provider."""
    return "\n".join(json.dumps(seen.json) for seen in server.requests if seen.path.endswith("/completions"))


def test_typed_text_is_sent_without_code_and_tools_with_one_note(nvim_factory, tmp_path, server):
    """`@path` stays text, no code is gathered, and no tool is offered."""
    chat = start(nvim_factory, tmp_path, server)
    chat.say("What does @a.lua in this project do?")
    assert "Code is not sent (opts.send_code is false)" in chat.text()
    chat.say("And the function x?")
    assert chat.text().count("Code is not sent") == 1
    assert "What does @a.lua in this project do?" in sent(server)
    assert SECRET not in sent(server)
    assert all("tools" not in seen.json for seen in server.requests if seen.path.endswith("/completions"))


def test_a_call_of_a_tool_that_was_not_offered_returns_nothing(nvim_factory, tmp_path):
    """A model may invent a tool name."""
    call = Call("read_file", json.dumps({"path": "a.lua"}), id="call_1")
    with ChatServerThread([reply("Look.", calls=[call]), reply("Fine.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server)
        chat.say("hello")
        assert SECRET not in sent(server)


@pytest.mark.parametrize("mention", ["#{buffer}", "#{buffer:a.lua}", "#{file:a.lua}", "#{diff}", "#{codebase}"])
def test_editor_context_is_refused_and_the_message_stays(nvim_factory, tmp_path, server, mention):
    """The refusal gives the reason."""
    chat = start(nvim_factory, tmp_path, server)
    text = f"Look at {mention}"
    chat.type(text)
    chat.nvim.feed("<Esc><CR>")
    chat.nvim.wait_screen("is code, and opts.send_code is false")
    assert chat.draft() == text
    assert sent(server) == ""


@pytest.mark.parametrize("command", ["/file a.lua", "/buffer a.lua", "/symbols a.lua", "/diff"])
def test_attachments_are_refused(nvim_factory, tmp_path, server, command):
    """The context block is empty."""
    chat = start(nvim_factory, tmp_path, server)
    chat.nvim.command("badd a.lua")
    chat.type(command)
    chat.nvim.feed("<Esc><CR>")
    chat.nvim.wait_screen("Not attached: .* opts.send_code is false")
    assert "> Context" not in chat.text()


def test_selections_edits_prompts_and_commit_messages_are_refused(nvim_factory, tmp_path, server):
    """Each refusal is one line, and no request is sent."""
    chat = start(nvim_factory, tmp_path, server)
    nvim = chat.nvim
    nvim.command("edit a.lua")
    for command, what in (
        ("1CodeCompanion make it a table", "An edit in place sends code"),
        ("1CodeCompanionChat why", "A range sends code"),
        ("1CodeCompanionChat Add", "A selection sends code"),
        ("1CodeCompanion explain", "The prompt Explain was not used: it sends code"),
        ("CodeCompanion commit", "A commit message sends code"),
    ):
        nvim.command("messages clear")
        nvim.command(command)
        nvim.wait_for(lambda what=what: what in nvim.messages(), what)
        assert "opts.send_code is false" in nvim.messages()
    nvim.command("CodeCompanion explain")
    nvim.wait_screen("#{buffer} is code, and opts.send_code is false")
    assert sent(server) == ""


def test_a_command_line_is_generated_from_the_words_alone(nvim_factory, tmp_path):
    """Neither the line under the cursor nor the range is sent."""
    with ChatServerThread([reply("sort"), reply("1,2sort")], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server).nvim
        nvim.command("edit a.lua")
        for command, line in (("CodeCompanionCmd sort it", "sort"), ("1,2CodeCompanionCmd sort these", "1,2sort")):
            nvim.command(command)
            nvim.wait_lua(f"return vim.fn.getcmdline() == '{line}'")
            nvim.feed("<C-c>")
        assert "Request: sort these" in sent(server)
        assert "their range is 1,2" in sent(server)
        assert SECRET not in sent(server)


def test_completion_at_the_cursor_is_off(nvim_factory, tmp_path, server):
    """Its status shows the reason."""
    chat = start(nvim_factory, tmp_path, server, options={"completion": {"enabled": True}})
    chat.nvim.command("edit a.lua")
    problem = chat.nvim.lua("return require('codecompanion.inline.eligible').buffer_problem(0)")
    assert problem == "opts.send_code is false"


def test_a_function_decides_each_time_and_a_failing_one_forbids(nvim_factory, tmp_path, server):
    """The function may allow one folder and forbid another."""
    chat = start(nvim_factory, tmp_path, server, opened=False)
    nvim = chat.nvim
    nvim.lua(
        "_G.may = true; local config = require('codecompanion.config')"
        " config.options.opts.send_code = function() if _G.may == nil then error('lost') end return _G.may end"
    )
    chat.open()
    nvim.command("badd a.lua")
    chat.say("What is in #{buffer:a.lua}?")
    assert SECRET in sent(server)
    server.requests.clear()
    nvim.lua("_G.may = nil")
    nvim.command("CodeCompanionChat New")
    chat.wait_ready()
    chat.type("What is in #{buffer:a.lua}?")
    nvim.feed("<Esc><CR>")
    nvim.wait_screen("is code, and opts.send_code is false")
    nvim.wait_for(lambda: "opts.send_code: the function failed" in nvim.messages())
    assert sent(server) == ""


def test_items_declared_free_of_code_are_sent(nvim_factory, tmp_path, server):
    """The option is `contains_code = false` of an item or a command."""
    no_code = {"opts": {"contains_code": False}}
    chat = {"editor_context": {"buffer": no_code}, "slash_commands": {"file": no_code}}
    made = start(nvim_factory, tmp_path, server, options={"interactions": {"chat": {"adapter": "loop", **chat}}})
    made.nvim.command("badd a.lua")
    made.say("What is in #{buffer:a.lua}?")
    assert SECRET in sent(server)
