"""Writing code with suggestions at the cursor: ghost text, partial acceptance, a server that goes down and recovers.

The model is a loopback server that sends Ollama's bytes and refuses the requests that Ollama refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.journeys.chat import command, quit_all
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out
from tests.journeys.terminal import Terminal
from tests.providers.completion.server import FillServerThread

pytestmark = pytest.mark.slow("a journey in a real terminal")

KEYS = {"accept": "<C-l>", "accept_word": "<C-f>", "accept_line": "<C-j>", "next": "<C-n>", "dismiss": "<C-]>"}
METHOD = "peek(self):\n        return self.items[-1]\n\n    def clear(self):\n        self.items.clear()"


@pytest.fixture
def server() -> Iterator[FillServerThread]:
    """Return a server without suggestions: it returns those it is given in order, then none."""
    with FillServerThread() as thread:
        yield thread


def configure(desk: Desk, url: str, **options: Any) -> None:
    """Enable completion from the server at `url`."""
    completion = {"enabled": True, "url": url, "debounce": 60, "keymaps": KEYS, **options}
    desk.configure_offline({"completion": completion}, before="vim.o.statusline = '%f %m %= [%{v:lua.C()}]'\n" + LINE)


LINE = "_G.C = function() return require('codecompanion').completion_statusline() end\n"


@pytest.fixture
def terminal(desk: Desk, server: FillServerThread) -> Terminal:
    """Return a terminal showing src/stack.py, with the cursor on the last line."""
    lay_out(desk)
    configure(desk, server.address)
    terminal = desk.nvim("src/stack.py", size=(80, 32))
    terminal.wait("class Stack")
    terminal.keys("G")
    return terminal


def test_an_afternoon_of_writing_works(desk: Desk, terminal: Terminal, server: FillServerThread) -> None:
    """Suggestions are shown, accepted in parts, typed over, undone and repeated, and the saved file is as expected."""
    server.script.append(METHOD)
    terminal.keys("o<CR>    def ")
    screen = terminal.wait(r"def peek\(self\):\n        return self.items\[-1\]\n\n    def clear\(self\):")
    assert "[suggestion]" in screen.split("\n")[-2]
    assert "peek" not in desk.read("src/stack.py")
    terminal.keys("pe")
    assert "def peek(self):" in terminal.still()
    terminal.keys("<C-f>")
    terminal.still()
    terminal.keys("<C-j>")
    terminal.still()
    terminal.keys("<C-j>")
    terminal.still()
    terminal.keys("<C-]>")
    terminal.wait(lambda screen: "clear" not in screen)
    terminal.keys("<Esc>:w<CR>")
    terminal.still()
    assert desk.read("src/stack.py").endswith("    def peek(self):\n        return self.items[-1]\n")
    terminal.keys("u")
    screen = terminal.still()
    assert "def peek(self):" in screen
    assert screen.count("return self.items[-1]") == 1, "one step for each part"
    terminal.keys("<C-r>")
    assert terminal.still().count("return self.items[-1]") == 2
    server.script.append(" # the newest")
    terminal.keys("A")
    terminal.wait("# the newest")
    terminal.keys("<C-l><Esc>")
    terminal.still()
    terminal.keys("kk.")
    assert terminal.still().count("# the newest") == 2
    quit_all(terminal)


def test_an_unreachable_server_is_used_once_it_recovers(desk: Desk, server: FillServerThread) -> None:
    """Typing is unaffected.

    One sentence appears, the status has the details, and suggestions arrive after the recovery.
    """
    lay_out(desk)
    configure(desk, "http://127.0.0.1:9")
    terminal = desk.nvim("src/stack.py")
    terminal.wait("class Stack")
    terminal.keys("Goxx")
    terminal.wait(r"\[no suggestions\]")
    terminal.keys(" yy")
    assert "xx yy" in terminal.still()
    terminal.keys("<Esc>")
    terminal.wait("no connection to http://127.0.0.1:9")
    assert "no connection" in command(terminal, "CodeCompanion complete status", "Completion is on|no connection")
    quit_all(terminal)
    configure(desk, server.address)
    server.script.append("GHOST()")
    terminal.start_again()
    terminal.wait("class Stack")
    terminal.keys("Goxx")
    terminal.wait(r"xxGHOST\(\)")
    terminal.keys("<C-l><Esc>")
    assert "xxGHOST()" in terminal.still()
    assert "suggestion" not in terminal.rows()[-2]
    quit_all(terminal)


def test_a_paste_of_ten_thousand_lines_and_a_secret_file_are_handled(
    desk: Desk, terminal: Terminal, server: FillServerThread
) -> None:
    """Nothing is requested while text pours in, nor ever for `.env`."""
    terminal.keys("o")
    terminal.paste("".join(f"row = {number}\n" for number in range(10_000)))
    terminal.wait(r"row = 9999")
    terminal.still()
    assert len(server.requests) <= 2, "one when insert mode began, one after the paste"
    server.script.append("hunter2")
    terminal.keys("<Esc>:e! .env<CR>iPASSWORD=<C-o>:CodeCompanionComplete<CR>")
    screen = terminal.wait(r"PASSWORD= no suggestions: \.env may contain secrets")
    assert "hunter2" not in screen
    screen = command(terminal, "CodeCompanion complete status", r"off here: \.env may contain secrets")
    assert not [request for request in server.requests if "PASSWORD" in str(request.json)]
    quit_all(terminal)
