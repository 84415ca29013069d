"""Open files in the context: a command-line question with lines of a file, and a live file (1).

A chat is opened by a question, the user continues typing in the file without saving it, another program writes it, a
file is dropped onto the terminal, and Neovim is killed and restarted. The model's input is compared after each step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from real_chat import KEY
from tests.journeys.chat import READY, command, say, send
from tests.journeys.desk import Desk
from tests.journeys.terminal import Terminal
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

pytestmark = pytest.mark.slow("a journey in a real terminal")

TEXT = "".join(f"line {number} of the notes\n" for number in range(1, 31))


@pytest.fixture
def server() -> Iterator[ChatServerThread]:
    """Return a server that gives the same answer to every request."""
    with ChatServerThread(default=lambda received: reply("I see."), key=KEY) as running:
        yield running


@pytest.fixture
def terminal(desk: Desk, server: ChatServerThread) -> Terminal:
    """Return a terminal with notes.txt open."""
    desk.write("notes.txt", TEXT)
    desk.write("my picture.txt", "a file that is dropped\n")
    desk.configure(server.url, {"display": {"chat": {"window": {"layout": "vertical", "position": "right"}}}})
    terminal = desk.nvim("notes.txt", size=(140, 40))
    terminal.wait("line 1 of the notes")
    return terminal


def told(server: ChatServerThread) -> list[str]:
    """Return the user messages of the last request, without the line about the visible text."""
    sent = [str(m["content"]) for m in server.requests[-1].json["messages"] if m["role"] == "user"]
    return [text for text in sent if not text.startswith("The user is looking at")]


def test_a_live_file_is_followed_over_a_day(terminal: Terminal, desk: Desk, server: ChatServerThread) -> None:
    """Nothing is sent twice, nothing is missing, and nothing is attached unasked."""
    command(terminal, "2,3CodeCompanionChat what are these lines?", "I see")
    assert told(server) == [
        "notes.txt:2-3\n```text\nline 2 of the notes\nline 3 of the notes\n```\nwhat are these lines?"
    ]
    terminal.wait(READY)
    send(terminal, "/file notes.txt")
    terminal.wait("↻ <file>notes.txt")

    terminal.keys("<Esc><C-w>h5GAxyz<Esc><C-w>l")
    say(terminal, "and now?", r"↻ notes.txt · \+1 −1")
    assert told(server)[-1] == "and now?"
    assert "-line 5 of the notes\n+line 5 of the notesxyz" in told(server)[-2]
    terminal.wait(READY)
    asked = len(told(server))
    say(terminal, "still?", r"still\?[\s\S]*I see")
    terminal.wait(READY)
    assert len(told(server)) == asked + 1, "what has not changed is not told"

    terminal.keys("<Esc><C-w>h:w<CR>")
    terminal.wait(r"notes\.txt. .*written")  # before another program writes it: Neovim would ask
    terminal.keys("<C-w>l")
    desk.write("notes.txt", desk.read("notes.txt") + "written by another program\n")
    say(terminal, "what was added?", r"↻ notes.txt · \+1 −0")
    assert "+written by another program" in told(server)[-2]
    assert "xyz" not in told(server)[-2].split("@@", 2)[-1].replace(" line 5 of the notesxyz", "")
    terminal.wait(READY)

    terminal.keys("<Esc>Gi")
    terminal.paste(f"'{desk.project}/my picture.txt'")
    screen = terminal.wait(r"gA attaches")
    assert "<file>my picture.txt" not in screen
    terminal.keys("<Esc>gA")
    say(terminal, "look at it", r"look at it[\s\S]*I see")
    assert any("a file that is dropped" in text for text in told(server))

    terminal.kill9()
    terminal.start_again([*desk.command(), "notes.txt"])
    terminal.wait("line 1 of the notes")
    command(terminal, "CodeCompanionChat Resume last", r"look at it[\s\S]*I see")
    desk.write("notes.txt", desk.read("notes.txt").replace("line 9 of", "line nine of"))
    say(terminal, "after the crash?", r"↻ notes.txt · \+1 −1")
    assert "+line nine of the notes" in told(server)[-2]
    assert not re.search(r"^\+.*(xyz|another program)", told(server)[-2], re.MULTILINE)
