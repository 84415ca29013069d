"""Messages that include open files: the buffer and the diagnostics first, and later only the changes."""

from __future__ import annotations

import pytest

from real_chat import KEY
from tests.journeys.chat import open_chat, quit_all, say
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

pytestmark = pytest.mark.slow("a journey in a real terminal")


def test_a_question_about_the_open_file_includes_it(desk: Desk) -> None:
    """The mention is typed, completed, sent, viewed with K, and used again."""
    lay_out(desk)
    with ChatServerThread(default=lambda received: reply("It reads and does not remove."), key=KEY) as server:
        desk.configure(server.url)
        terminal = desk.nvim("src/stack.py")
        open_chat(terminal)
        terminal.keys("iwhat is wrong in #{buf")
        terminal.keys("<C-x><C-o>")
        terminal.wait(r"#\{buffer\}")
        terminal.keys("<C-y><Esc>")
        screen = say(terminal, " here?", "It reads and does not remove")
        assert "▸ #{buffer} src/stack.py · " in screen
        terminal.keys("<Esc>gg/src.stack.py · <CR>")
        terminal.keys("K")
        terminal.wait(r"`src/stack.py`, all \d+ lines")
        terminal.keys("q")
        terminal.still()
        terminal.keys("<Esc>G")
        screen = say(terminal, "and now? #{buffer} #{quickfix}", r"quickfix list is empty[\s\S]*It reads")
        assert "already sent, as #{buffer}" in screen
        requests = [r.json["messages"] for r in server.requests if r.path.endswith("/chat/completions")]
        texts = [[m["content"] for m in request if m["role"] != "system"] for request in requests]
        assert not any("looking at" in text for text in texts[0]), "in this narrow terminal the chat covers the file"
        assert "def pop(self)" in texts[0][1]
        assert texts[1][: len(texts[0])] == texts[0], "what was sent stays as it is"
        named, empty = texts[1][-3:-1]
        assert named.startswith("`#{buffer}`: `src/stack.py`, all ")
        assert named.endswith("not sent again, because it is above, as `#{buffer}`.")
        assert empty == "`#{quickfix}`: the quickfix list is empty."
        quit_all(terminal)
