"""Questions about a project: the code is attached, viewed, excluded, cleared over time, and traced."""

from __future__ import annotations

import subprocess

import pytest

from real_chat import KEY
from tests.journeys.chat import command, open_chat, quit_all, say, send
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

pytestmark = pytest.mark.slow("a journey in a real terminal")

QUESTION = "why does pop of the stack never get shorter? #{codebase}"


def checkout(desk: Desk) -> None:
    """Turn the project into a Git repository with a commit."""
    lay_out(desk)
    for argv in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *argv], cwd=desk.project, env=desk.env, check=True)


def test_a_question_about_a_checkout_gets_its_code(desk: Desk) -> None:
    """A line below the question announces the code, a key shows pieces and reasons, and a restart changes nothing."""
    checkout(desk)
    with ChatServerThread(default=lambda received: reply("It reads and does not remove."), key=KEY) as server:
        desk.configure(server.url, {"interactions": {"chat": {"opts": {"context_management": {"editing": {
            "trigger": 2, "keep_cycles": 1}}}}}})  # fmt: skip
        terminal = desk.nvim("src/stack.py")
        open_chat(terminal)
        screen = say(terminal, QUESTION, "It reads and does not remove")
        assert "▸ " in screen
        assert "snippet" in screen
        terminal.keys("<Esc>gg/snippets\\? from<CR>")
        terminal.keys("K")
        screen = terminal.wait("searched for")
        assert "src/stack.py:" in screen
        terminal.keys("/Sent to the model<CR>")
        terminal.wait("(?m)Sent to the model:? ")
        terminal.keys("q")
        terminal.wait("It reads", gone="Sent to the model")

        send(terminal, "/context how are berths booked at night?")
        screen = terminal.wait("x leave out", gone="gathering")
        assert "notes.md" in screen
        terminal.keys("q")
        terminal.still()

        terminal.keys("<Esc>Gdd")  # the question of /context is in the input
        say(terminal, "are you sure?", r"are you sure\?[\s\S]*It reads")
        terminal.keys("<Esc>gg")
        terminal.wait(r"snippets.* · cleared")
        requests = [r.json["messages"] for r in server.requests if r.path.endswith("/chat/completions")]
        texts = [[m["content"] for m in request if m["role"] != "system"] for request in requests]
        assert texts[0][-1] == QUESTION
        code = texts[0][-2]
        assert "def pop(self)" in code
        assert "src/stack.py" in texts[1][texts[1].index(QUESTION) - 1]
        assert "def pop(self)" not in "".join(texts[1])

        screen = command(terminal, "CodeCompanionTrace 1", "Gathered code")
        terminal.keys("q")
        quit_all(terminal)

        again = desk.nvim()
        command(again, "CodeCompanionChat Resume why", r"snippets? from \d+ files? · cleared")
        quit_all(again)
