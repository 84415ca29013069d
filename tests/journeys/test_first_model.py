"""New users without a key, with Copilot, and with a ChatGPT plan: from `:CodeCompanion` to the first answer."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from tests.forked_python import forked_python
from tests.journeys.chat import BUSY, READY, command, quit_all, send
from tests.journeys.desk import Desk
from tests.providers.chat.thread import ChatServerThread
from tests.providers.chatgpt.thread import ChatGPTServerThread
from tests.providers.github.thread import GitHubServerThread

pytestmark = pytest.mark.slow("a journey in a real terminal")

ROOT = Path(__file__).parents[2]
WINDOW = "display = { chat = { window = { layout = 'buffer' } } }"
SETUP = f"require('codecompanion').setup({{ python = {{ host_prog = '{forked_python()}' }}, {WINDOW}%s }})\n"


def nobody() -> str:
    """Return an address where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_ollama_is_found_and_answers(desk: Desk) -> None:
    """With one command and one key, the list shows the running server and the chat uses it."""
    with ChatServerThread(key="", models=("qwen3:14b",)) as ollama:
        desk.configure_with(SETUP % "")
        terminal = desk.nvim(env={"OLLAMA_HOST": f"127.0.0.1:{ollama.port}"})
        command(terminal, "CodeCompanion adapter", "Choose an adapter")
        screen = terminal.wait("running: qwen3:14b")
        assert "OPENAI_API_KEY" in screen
        terminal.keys("<CR>")
        terminal.wait("## Me")
        send(terminal, "hello")
        terminal.wait("You said: hello", gone=BUSY)
        quit_all(terminal)


def test_copilot_is_set_up_with_a_code(desk: Desk) -> None:
    """The chat reports the missing login, the code is entered elsewhere, the chat continues."""
    with GitHubServerThread() as github:
        github.pending, github.approved = 0, False
        http = f", adapters = {{ http = {{ extend = {{ copilot = {{ opts = {{ github = '{github.base}' }} }} }} }} }}"
        desk.configure_with(SETUP % (http + ", interactions = { chat = { adapter = 'copilot' } }"))
        terminal = desk.nvim(env={"OLLAMA_HOST": nobody()})
        command(terminal, "CodeCompanionChat", READY)
        send(terminal, "hello")
        terminal.wait("not logged in to Copilot", gone=BUSY)
        command(terminal, "CodeCompanion login copilot", "WDJB-MJHT")
        github.approved = True
        terminal.wait("Logged in to copilot as octocat", gone="WDJB-MJHT")
        terminal.keys("gr")
        terminal.wait("You said: hello", gone=BUSY)
        quit_all(terminal)


def test_chatgpt_is_set_up_in_the_browser(desk: Desk, tmp_path: Path) -> None:
    """The system's command opens the browser, which redirects back; the chat continues, and `/cost` names the plan."""
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    run = f'{sys.executable} -m tests.providers.chatgpt.browser "$1"'
    opener.write_text(f"#!/bin/sh\ncd {ROOT} && PYTHONPATH={ROOT} exec {run} >{tmp_path}/browser.txt 2>&1\n")
    opener.chmod(0o755)
    with ChatGPTServerThread() as openai:
        entry = f"env = {{ url = '{openai.url}' }}, opts = {{ issuer = '{openai.base}' }}"
        http = f", adapters = {{ http = {{ extend = {{ chatgpt = {{ {entry} }} }} }} }}"
        desk.configure_with(SETUP % (http + ", interactions = { chat = { adapter = 'chatgpt' } }"))
        path = f"{opener.parent}:{os.environ['PATH']}"
        terminal = desk.nvim(env={"OLLAMA_HOST": nobody(), "PATH": path, "SSH_CONNECTION": "", "SSH_TTY": ""})
        command(terminal, "CodeCompanionChat", READY)
        send(terminal, "hello")
        terminal.wait("not logged in to ChatGPT", gone=BUSY)
        command(terminal, "CodeCompanion login chatgpt", "You're using your ChatGPT plan")
        terminal.keys("<CR>")
        terminal.wait("not logged in to ChatGPT", gone="You're using your ChatGPT plan")
        terminal.keys("gr")
        terminal.wait("You said: hello", gone=BUSY)
        send(terminal, "/cost")
        terminal.wait("included in the plan")
        terminal.keys("q")
        quit_all(terminal)
    assert "Return to Neovim" in (tmp_path / "browser.txt").read_text()
