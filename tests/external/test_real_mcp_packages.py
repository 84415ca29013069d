"""Installing the packages for MCP servers from within a chat, with the real uv and the real package index.

The home is clean, the private environment lacks the packages, and a message names a server of the project. Needs a
network or a warm cache for the environment; otherwise the tests are skipped with a message.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from plugin_managers import EVERY_NVIM, environments
from test_real_environment import find_uv

from harness import Nvim
from real_chat import KEY, RealChat, start_chat
from tests.mcp.listener import HOSTILE
from tests.providers.chat.answers import Answer, Call, reply
from tests.providers.chat.thread import ChatServerThread

pytestmark = pytest.mark.slow("real MCP servers are installed")

NAMES_IT = "say hello with @{mcp:odd}"
OWN_ENVIRONMENT = "require('codecompanion.config').options.python.host_prog = nil"
Start = Callable[[ChatServerThread], RealChat]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that opens a chat in a clean home, in a project that brings a server; the user agrees to it."""
    uv = find_uv()
    cache = subprocess.run([str(uv), "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").symlink_to(uv)
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "UV_CACHE_DIR": cache}
    servers = {"odd": {"command": sys.executable, "args": [str(HOSTILE)]}}
    files = [(".mcp.json", json.dumps({"mcpServers": servers}))]
    with ExitStack() as stack:

        def factory(**options: Any) -> Nvim:
            return stack.enter_context(Nvim(binary=EVERY_NVIM[0], size=(110, 40), **options))

        def begin(server: ChatServerThread) -> RealChat:
            chat = start_chat(factory, tmp_path, server, env=env, files=files, opened=False)
            chat.nvim.lua(OWN_ENVIRONMENT)
            chat.nvim.command("CodeCompanionChat")
            chat.nvim.wait_screen(r"Not loaded until trusted|were not\s+installed|could not|cannot be|failed")
            if "Not loaded until" not in chat.nvim.screen():
                pytest.skip(f"there is no environment, so nothing to add to: {chat.nvim.messages()}")
            assert len(environments(chat.nvim)) == 1
            return chat

        yield begin


def sent(server: ChatServerThread) -> list[str]:
    """Return the user's last message in each request."""
    asked = [one.json["messages"] for one in server.requests if one.path.endswith("/chat/completions")]
    return [[message["content"] for message in messages if message["role"] == "user"][-1] for messages in asked]


def answers() -> list[Answer]:
    called = reply(calls=[Call("odd__echo", json.dumps({"text": "hello"}), "c1")])
    return [called, reply("It said hello.")]


@pytest.mark.thorough("tests/nvim/test_mcp.py calls tools; this installs packages for them")
def test_a_chat_installs_the_packages_for_its_servers_and_calls_their_tool(start: Start) -> None:
    """The message that names a server stays in the input until the packages are installed; then it is sent once."""
    with ChatServerThread(answers(), key=KEY) as server:
        chat = start(server)
        before = chat.job_pid()
        chat.trust()
        chat.send(NAMES_IT)
        chat.nvim.wait_screen(r"the MCP server odd needs packages that are not installed")
        chat.nvim.wait_screen(r"Packages installed; the Python process restarts with them\.|were not installed")
        if "were not installed" in chat.nvim.messages():
            pytest.skip(f"the package index cannot be reached: {chat.nvim.messages()}")
        chat.nvim.wait_lua(f"return (require('codecompanion.host').inspect().pid or {before}) ~= {before}")
        chat.wait_ready()
        assert chat.draft() == NAMES_IT
        assert sent(server) == []
        chat.nvim.feed("<CR>")
        chat.nvim.wait_screen(r"echo of the MCP server")
        chat.press_on_approval("g2")
        chat.nvim.wait_screen(r"It said hello\.")
        chat.wait_state("idle")
        assert sent(server) == [NAMES_IT, NAMES_IT]  # the call, and the answer to its result
        assert chat.text().count(NAMES_IT) == 1
        result = [message for message in server.requests[-1].json["messages"] if message["role"] == "tool"]
        assert [message["content"] for message in result] == ["echo: hello"]
        assert chat.nvim.lua("return require('codecompanion.system.python_environment').wants('mcp')")


@pytest.mark.thorough("tests/nvim/test_install.py does the same for the other packages")
def test_a_missing_network_is_reported_and_the_chat_continues(start: Start) -> None:
    """The error is one sentence; the host and its environment are unchanged, and other messages are answered."""
    with ChatServerThread([reply("Without it.")], key=KEY) as server:
        chat = start(server)
        empty = chat.root / "empty"
        index = "http://127.0.0.1:9/simple"
        chat.nvim.lua("vim.env.UV_CACHE_DIR, vim.env.UV_DEFAULT_INDEX = ...", str(empty), index)
        before = chat.job_pid()
        chat.trust()
        chat.send(NAMES_IT)
        chat.nvim.wait_screen(r"the MCP server odd needs packages that are not installed")
        why = "The package index does not answer: the Python packages were not installed."
        chat.nvim.wait_for(lambda: chat.nvim.messages().strip().endswith(why), "why nothing was installed")
        assert not chat.nvim.blocked()
        assert chat.job_pid() == before
        assert len(environments(chat.nvim)) == 1
        assert not chat.nvim.lua("return require('codecompanion.system.python_environment').wants('mcp')")
        assert chat.draft() == NAMES_IT
        chat.nvim.feed("GcchelloX<Esc>x<CR>")
        chat.nvim.wait_screen(r"Without it\.")
        assert sent(server) == ["hello"]
