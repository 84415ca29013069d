"""A morning with prompts: the palette over a selection, a project prompt, and the commit message.

Run in a real terminal, as a user would; the model is a loopback server that records its requests.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from real_chat import KEY
from tests.journeys.chat import BUSY, command
from tests.journeys.desk import Desk
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

pytestmark = pytest.mark.slow("a journey in a real terminal")

PROMPT = "---\nname: House style\ndescription: Check against our style\n---\nCheck this against our style.\n"


def git(desk: Desk, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=desk.project, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def said(server: ChatServerThread) -> str:
    """Return the user's text in the newest request."""
    return str([r.json for r in server.requests if r.path.endswith("/chat/completions")][-1]["messages"][-1]["content"])


def test_a_prompt_leads_from_the_palette_to_the_commit(desk: Desk) -> None:
    """The user explains a selection, uses the project's prompt, and writes the commit message."""
    desk.write("src/stack.py", "class Stack:\n    def pop(self):\n        return self.items[-1]\n")
    desk.write(".codecompanion/prompts/style.md", PROMPT)
    git(desk, "init", "-q")
    git(desk, "add", "src")
    git(desk, "commit", "-q", "-m", "feat(stack): a stack")
    with ChatServerThread([reply("It peeks."), reply("All well."), reply("fix(stack): pop takes")], key=KEY) as server:
        desk.configure(server.url, {"display": {"chat": {"window": {"layout": "vertical"}}}})
        terminal = desk.nvim("src/stack.py", size=(120, 36))
        terminal.wait("class Stack")
        terminal.keys("jVj:CodeCompanionActions<CR>")
        screen = terminal.wait("House style +Check against our style +/style")
        assert "Explain" in screen
        terminal.keys("/Explain<CR><CR>")
        terminal.wait("It peeks", gone=BUSY)
        assert "src/stack.py:2-3" in said(server)
        assert "return self.items[-1]" in said(server)

        command(terminal, "CodeCompanion /style", "Check this against our style")
        assert len(server.requests) == 1
        terminal.keys("<Esc><CR>")
        terminal.wait("All well", gone=BUSY)
        assert said(server) == "Check this against our style."

        desk.write("src/stack.py", "class Stack:\n    def pop(self):\n        return self.items.pop()\n")
        git(desk, "add", "src")
        command(terminal, "CodeCompanion commit", "fix\\(stack\\): pop takes")
        assert "+        return self.items.pop()" in said(server)
        assert git(desk, "log", "--format=%s").strip() == "feat(stack): a stack"
