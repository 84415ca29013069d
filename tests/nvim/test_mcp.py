"""MCP servers through the whole stack: a real Neovim and host, a real server process and bytes sent to a provider."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from real_chat import KEY, WAITS, start_chat
from test_own_tools import offered
from tests.contents import contents_below
from tests.mcp.listener import HOSTILE, is_alive, recorded
from tests.patience import PATIENCE_S
from tests.providers.chat.answers import Answer, Call, reply
from tests.providers.chat.thread import ChatServerThread

PROPER = HOSTILE.with_name("proper.py")


def servers(record: Path, *ways: str, **more: Any) -> dict[str, Any]:
    """Return the option `mcp` with the hostile server, which records its input."""
    entry = {"cmd": [sys.executable, str(HOSTILE), *ways], "env": {"RECORD": str(record)}, **more}
    return {"mcp": {"servers": {"odd": entry}}}


def calls_echo() -> Answer:
    return reply(calls=[Call("odd__echo", json.dumps({"text": "hello"}), "c1")])


def pids(record: Path) -> list[int]:
    return [one["pid"] for one in recorded(record) if "pid" in one]


def wait_until_gone(ids: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while any(map(is_alive, ids)):
        assert time.monotonic() < deadline, f"still there: {list(filter(is_alive, ids))}"
        time.sleep(0.05)


def test_a_servers_tool_is_called_with_approval_and_listed_on_the_page(nvim_factory, tmp_path):
    """The server starts lazily, the call is approved and run, and its result is in a fold.

    `:CodeCompanion mcp` shows its tokens.
    """
    record = tmp_path / "record"
    with ChatServerThread([reply("Hello."), calls_echo(), reply("It said hello.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=servers(record))
        chat.send("/tools")
        chat.nvim.wait_screen(r"○ mcp:odd .*starts with the next message · The tools of the MCP server odd")
        chat.nvim.feed("q")
        chat.say("@{files} hello")
        assert not record.exists()
        chat.send("say hello with @{full}")
        chat.nvim.wait_screen(r"▎ echo of the MCP server odd\s*\n")
        chat.press_on_approval("g2")
        chat.nvim.wait_screen(r"It said hello\.")
        chat.wait_state("idle")
        assert "odd__echo hello" in chat.text()
        assert server.refusals == []
        chat.nvim.command("CodeCompanion mcp")
        screen = chat.nvim.wait_screen(r"odd · ready · 5 of 5 tools · [\d.,k]+ tokens")
        assert "+ odd__echo" in screen
        chat.nvim.feed("/odd__echo<CR>t")
        chat.nvim.wait_screen(r"odd · ready · 4 of 5 tools")
        chat.nvim.feed("K")
        chat.nvim.wait_screen(r"Output of odd")
        chat.nvim.feed("qs")
        chat.nvim.wait_screen(r"odd · off")


def test_all_tools_of_a_server_are_chosen_by_its_name(nvim_factory, tmp_path):
    """`@{odd}` starts the server.

    The message waits for it and is sent with exactly its tools, which are shown, listed, removed and completed.
    """
    record = tmp_path / "record"
    with ChatServerThread([reply("One."), reply("Two."), reply("Three.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=servers(record))
        chat.say("use @{odd}")
        assert set(offered(server)) == {f"odd__{name}" for name in ("ask", "die", "echo", "huge", "wait")}
        chat.nvim.wait_screen(r"<group>mcp:odd</group>.* 5 tools")
        chat.send("/tools")
        chat.nvim.wait_screen(r"● mcp:odd +\d+ tokens +· 5 tools +· The tools of the MCP server odd")
        chat.nvim.feed("q")
        chat.nvim.command("CodeCompanion mcp")
        chat.nvim.wait_screen(r"odd · ready")
        chat.nvim.feed("s")
        chat.nvim.wait_screen(r"odd · off")
        chat.nvim.feed("q")
        chat.nvim.wait_screen(r"<group>mcp:odd</group>.* off")
        chat.say("and now?")
        assert offered(server) == {}
        chat.nvim.feed("ggjdd")
        chat.nvim.wait_for(lambda: "<group>" not in chat.text(), "no line")
        chat.send("use @{mcp:odd}")
        chat.nvim.wait_screen(r"the MCP server odd is off; start it with `r` in :CodeCompanion mcp")
        assert chat.draft() == "use @{mcp:odd}"


@pytest.mark.slow("waits for the end of processes")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked up in /proc")
@pytest.mark.parametrize("who", ["quit", "neovim", "host"])
def test_no_server_outlives_neovim(nvim_factory, tmp_path, who):
    """After `:qall`, or `kill -9` of Neovim or the host, all processes of the server have ended, including daemons."""
    record = tmp_path / "record"
    with ChatServerThread([reply("Hi.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=servers(record, "spawn", "deaf"))
        chat.say("hello")
        chat.nvim.wait_for(lambda: len(pids(record)) == 3, "its processes")
        ours = pids(record)
        assert all(map(is_alive, ours))
        if who == "host":
            os.kill(chat.host_pid(), signal.SIGKILL)
        elif who == "neovim":
            os.kill(chat.nvim.lua("return vim.uv.os_getpid()"), signal.SIGKILL)
        else:
            chat.nvim.lua('vim.schedule(function() vim.cmd("qall!") end)')
        wait_until_gone(ours)


def project(root: Path, *entries: tuple[str, list[str]]) -> None:
    work = root / "work"
    work.mkdir(exist_ok=True)
    table = {name: {"command": command[0], "args": command[1:]} for name, command in entries}
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": table}))


def test_a_row_of_the_page_is_not_cut_inside_a_word(nvim_factory, tmp_path):
    project(tmp_path, ("a-server", ["sh"]), ("another-server", ["sh"]))
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(40, 24))
        chat.nvim.command("CodeCompanion mcp")
        chat.nvim.wait_screen(r"│\.mcp\.json · a-server, another-server +│\n│ +· not trusted: a to review +│")
        chat.nvim.request("nvim_ui_try_resize", 80, 24)
        chat.nvim.wait_screen(r"│\.mcp\.json · a-server, another-server · not trusted: a to review +│")


def test_the_servers_of_a_project_are_started_after_the_user_trusts_them(nvim_factory, tmp_path):
    """The exact command line is shown and nothing runs before it is trusted.

    If the file changes, it must be trusted again.
    """
    record = tmp_path / "record"
    runs = f"RECORD={record} exec {sys.executable} {HOSTILE}"
    project(tmp_path, ("odd", ["sh", "-c", runs]))
    with ChatServerThread([reply("One."), calls_echo(), reply("Two."), reply("Three.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.nvim.wait_screen(WAITS + r": \.mcp\.json · gtr to review")
        chat.nvim.feed("<Esc>gtr")
        chat.nvim.wait_screen(str(HOSTILE).rpartition("/")[2].replace(".", r"\."))
        chat.nvim.feed("q")
        chat.say("before")
        assert not record.exists()
        chat.trust()
        chat.send("say hello")
        chat.nvim.wait_screen(r"echo of the MCP server")
        chat.press_on_approval("g2")
        chat.nvim.wait_screen(r"Two\.")
        chat.wait_state("idle")
        chat.nvim.command("CodeCompanionChat")
        chat.wait_ready()
        chat.say("again")
        assert WAITS not in chat.text()
        project(tmp_path, ("odd", ["sh", "-c", runs + " garbage"]))
        chat.nvim.command("CodeCompanionChat")
        chat.nvim.wait_screen(WAITS)


def test_the_first_message_to_a_new_host_may_name_a_projects_server(nvim_factory, tmp_path):
    """The message waits until the host knows the file, even right after a trust decision."""
    record = tmp_path / "record"
    project(tmp_path, ("odd", ["sh", "-c", f"RECORD={record} exec {sys.executable} {HOSTILE}"]))
    with ChatServerThread([reply("One."), reply("Two."), reply("Three.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.nvim.wait_screen(WAITS)
        chat.trust()
        chat.say("@{mcp:odd} hello")
        assert "odd__echo" in offered(server)
        for _ in range(2):
            chat.nvim.command("CodeCompanion restart")
            chat.say("@{odd} @{read_file} again")
            assert "odd__echo" in offered(server), chat.text()


def test_the_page_belongs_to_the_folder_of_the_chat(nvim_factory, tmp_path):
    """This also applies after `:cd` and after using one of its keys; outside a chat it shows the working folder.

    The title names the folder.
    """
    record = tmp_path / "record"
    project(tmp_path, ("odd", ["sh", "-c", f"RECORD={record} exec {sys.executable} {HOSTILE}"]))
    (tmp_path / "other").mkdir()
    with ChatServerThread([reply("One.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.nvim.wait_screen(WAITS)
        chat.trust()
        chat.say("hello")
        chat.nvim.command(f"cd {tmp_path / 'other'}")
        chat.nvim.command("CodeCompanion mcp")
        screen = chat.nvim.wait_screen(r"odd · ready")
        assert "MCP servers of " in screen
        assert re.search(r"MCP servers of \S*/work ", screen)
        assert "from .mcp.json · sh -c" in screen
        chat.nvim.feed("s")
        chat.nvim.wait_screen(r"odd · off")
        chat.nvim.feed("r")
        chat.nvim.wait_screen(r"odd · ready")
        chat.nvim.feed("q")
        chat.nvim.command("new")
        chat.nvim.command("CodeCompanion mcp")
        screen = chat.nvim.wait_screen(r"MCP servers of \S*/other ")
        assert "No MCP server is configured" in screen


def test_revoked_trust_ends_the_server_in_every_chat(nvim_factory, tmp_path):
    """`:CodeCompanion trust revoke` applies immediately, and the line reappears."""
    record = tmp_path / "record"
    project(tmp_path, ("odd", ["sh", "-c", f"RECORD={record} exec {sys.executable} {HOSTILE}"]))
    with ChatServerThread([reply("One."), reply("Two.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.nvim.wait_screen(WAITS)
        chat.trust()
        chat.nvim.command("CodeCompanionChat")
        chat.wait_ready()
        assert WAITS not in chat.text()
        chat.say("first")
        assert "odd__echo" in offered(server)
        chat.nvim.command("CodeCompanion trust revoke")
        chat.nvim.wait_for(lambda: WAITS in chat.text(), "the line")
        chat.say("second")
        assert "odd__echo" not in offered(server)
        chat.nvim.command("CodeCompanion mcp")
        chat.nvim.wait_screen(r"\.mcp\.json · odd · not trusted: a to review")
        chat.nvim.feed("a")
        chat.nvim.wait_screen(r"· \.mcp\.json · starts 1 MCP server: odd")
        chat.nvim.lua("require('codecompanion.pages.trust_page').UNREAD_MS = 0")
        chat.nvim.feed("T")
        chat.nvim.wait_screen(r"Trusted: \S+/work\. 1 file in it may be used\.")


def test_a_users_own_python_gets_one_instruction_about_the_packages(nvim_factory, tmp_path):
    """The instruction names that Python."""
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.nvim.lua("require('codecompanion.config').options.python.host_prog = '/opt/mine/python'")
        chat.nvim.lua("require('codecompanion.install').add('mcp')")
        told = chat.nvim.lua("return vim.api.nvim_exec2('messages', { output = true }).output")
        assert "run `/opt/mine/python -m pip install mcp`, then :CodeCompanion restart" in told
        assert ":CodeCompanion install" not in told


def test_the_host_restarts_with_the_packages_after_the_turn(nvim_factory, tmp_path):
    """If the packages are ready during a reply, the reply completes before the host restarts."""
    slow = reply("slow " * 40 + "end.", chunk_chars=5, delay_s=0.05)
    with ChatServerThread([slow, reply("Two.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        pid = chat.job_pid()
        chat.send("first")
        chat.nvim.wait_screen("slow")
        chat.nvim.lua("require('codecompanion.install').add = function(_, done) done() end")
        chat.nvim.lua(
            """require('codecompanion.host').on_events('[{"type":"packages_missing","chat":"","extra":"mcp"}]')"""
        )
        chat.nvim.wait_screen(r"Packages installed; the Python process restarts with them\.")
        assert "end." in chat.text()
        assert "interrupted" not in chat.text()
        assert "! Packages" not in chat.text(), "good news is no warning"
        chat.nvim.wait_lua(f"return (require('codecompanion.host').inspect().pid or {pid}) ~= {pid}")
        chat.say("second")
        assert "Two." in chat.text()


def test_an_invalid_project_file_is_reported_with_its_key(nvim_factory, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".mcp.json").write_text('{"mcpServers": {"odd": {"args": []}}}')
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.nvim.wait_screen(r"\.mcp\.json: mcpServers\.odd")


def test_a_prompt_of_a_server_is_inserted_into_the_input(nvim_factory, tmp_path):
    """The text of `/mcp:server:prompt` can be read before it is sent."""
    options = {"mcp": {"servers": {"proper": {"cmd": [sys.executable, str(PROPER)]}}}}
    with ChatServerThread([reply("Hi."), reply("Hello Eve.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=options)
        chat.say("hello")
        chat.nvim.wait_lua("return #require('codecompanion.host.mcp_servers').servers[1].prompts == 1")
        chat.nvim.command("CodeCompanion mcp")
        chat.nvim.wait_screen(r"/mcp:proper:greet <name> \[also\]")
        chat.nvim.feed("q")
        chat.send("/mcp:proper:greet Eve")
        chat.nvim.wait_for(lambda: chat.draft() == "Say hello to Eve.", "the prompt in the input")


def test_a_resource_can_be_mentioned_in_a_message(nvim_factory, tmp_path):
    """`#{mcp:server:address}` is completed once the server runs, read by the host, and sent with the message."""
    options = {"mcp": {"servers": {"proper": {"cmd": [sys.executable, str(PROPER)]}}}}
    with ChatServerThread([reply("Hi."), reply("The plants.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=options)
        chat.say("hello")
        offered = "return require('codecompanion.editor_context').get('mcp').complete('proper')"
        chat.nvim.wait_lua(
            f"return require('codecompanion.editor_context').get('mcp') ~= nil and #(function() {offered} end)() > 0"
        )
        assert chat.nvim.lua(offered) == ["proper:note://today"]
        chat.say("what is to be done? #{mcp:proper:note://today}")
        sent = [r.json["messages"] for r in server.requests if r.path.endswith("/chat/completions")][-1]
        assert "Water the plants." in json.dumps(sent)


def test_an_input_stays_visible_if_the_previous_one_ends_late(nvim_factory):
    """`<Esc>` and the next key can be typed before Neovim has cleared the command line."""
    nvim = nvim_factory()
    nvim.lua(
        "vim.keymap.set('n', 'X', function()\n"
        "  require('codecompanion.screen.choose').forget_prompt()\n"
        "  vim.schedule(function() _G.cleared = true end)\n"
        "  vim.fn.input('Your name: ', 'Eve')\n"
        "end)"
    )
    nvim.feed("X")
    nvim.wait_lua("return _G.cleared")
    nvim.lua("vim.wait(0)")
    assert "Your name: Eve" in nvim.screen()


def test_values_requested_by_a_server_are_typed_one_by_one(nvim_factory, tmp_path):
    """An elicitation shows a block and an input for each field; the server receives the values."""
    record = tmp_path / "record"
    asks = reply(calls=[Call("odd__ask", json.dumps({"text": "form"}), "c1")])
    with ChatServerThread([asks, reply("Thank you.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=servers(record, require_approval_before=False))
        chat.send("ask me")
        chat.nvim.wait_screen(r"asks you to enter values")
        chat.press_on_approval("g2")
        chat.nvim.wait_screen(r"Your name:")
        chat.nvim.feed("Eve<CR>")
        chat.nvim.wait_screen(r"\nage:")
        chat.nvim.feed("<Esc>")
        chat.press_on_approval("g2")
        chat.nvim.wait_screen(r"Your name: Eve")  # entered values are kept
        chat.nvim.feed("<CR>")
        chat.nvim.wait_screen(r"\nage:")
        chat.nvim.feed("33<CR>")
        chat.nvim.wait_screen(r"sure \(true, false\): true")
        chat.nvim.feed("<CR>")
        chat.nvim.wait_screen(r"Thank you\.")
        answers = [one["result"] for one in recorded(record) if one.get("id") == 777]
        assert answers == [{"action": "accept", "content": {"name": "Eve", "age": 33, "sure": True}}]


def test_a_secret_field_is_typed_invisibly_and_stored_nowhere(nvim_factory, tmp_path):
    """The secret is not in input history, shada, registers, undo, buffer, log or store, only on the server."""
    record, canary = tmp_path / "record", "Pencil4711rocket"
    asks = reply(calls=[Call("odd__ask", json.dumps({"text": "secret"}), "c1")])
    with ChatServerThread([asks, reply("Thank you.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=servers(record, require_approval_before=False))
        chat.send("ask me")
        chat.nvim.wait_screen(r"asks you to enter values")
        chat.press_on_approval("g2")
        chat.nvim.wait_screen(r"Your name:")
        chat.nvim.feed("Eve<CR>")
        chat.nvim.wait_screen(r"Database password:")
        chat.nvim.feed(canary)
        chat.nvim.wait_screen(r"Database password: \*{16}")
        assert canary not in chat.nvim.screen()
        chat.nvim.feed("<CR>")
        chat.nvim.wait_screen(r"pin:")
        chat.nvim.feed(f"{canary}2<CR>")
        chat.nvim.wait_screen(r"Thank you")
        shada = tmp_path / "left.shada"
        kept = chat.nvim.lua(
            "local path = ...\n"
            "vim.cmd.wshada({ path, bang = true })\n"
            "return vim.fn.execute('history all') .. vim.fn.execute('registers') .. vim.fn.execute('messages')"
            " .. vim.inspect(vim.fn.undotree())",
            str(shada),
        )
        assert canary not in kept + chat.text()
        assert canary.encode() not in shada.read_bytes()
        answers = [one["result"]["content"] for one in recorded(record) if one.get("id") == 777]
        assert answers == [{"user": "Eve", "gate": canary, "pin": f"{canary}2"}]
        chat.nvim.__exit__()
    holding = [path.name for path, content in contents_below(tmp_path) if canary.encode() in content]
    assert holding == [record.name]


def test_checkhealth_lists_the_servers(nvim_factory, tmp_path):
    """Each server with its state, its tools or last error, and its command; the project's file with its trust."""
    root = tmp_path / "project"
    root.mkdir()
    (root / ".git").mkdir()
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": {"command": "theirs"}}}))
    mine = {"odd": {"cmd": [sys.executable, str(HOSTILE)], "env": {"RECORD": str(tmp_path / "record")}}}
    options = {"mcp": {"servers": {**mine, "gone": {"cmd": ["no-such-program", "x"]}}}}
    with ChatServerThread([reply("Hello.")], key=KEY) as server:
        chat = start_chat(nvim_factory, root, server, options=options, size=(160, 40))
        chat.nvim.command(f"cd {root}")
        text = chat.health()
        assert "odd · not started · " in text
        assert ".mcp.json · theirs · not trusted: :CodeCompanion trust" in text
        chat.say("hello with @{full}")
        text = chat.health()
    assert re.search(r"OK odd · ready · 5 of 5 tools · [\d.,k]+ tokens · \S+python", text)
    assert "gone · failed: no-such-program was not found on the PATH · no-such-program x" in text


def test_checkhealth_needs_one_line_without_servers(nvim_factory, tmp_path):
    with ChatServerThread(key=KEY) as server:
        assert "None configured" in start_chat(nvim_factory, tmp_path, server).health()
