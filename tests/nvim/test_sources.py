"""`/fetch`, `/symbols`, `/help <tag>`, `/diff`, `/terminal`, `/now` in a real Neovim with the real host."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codecompanion.web.fetching import Fetched
from codecompanion.web.page_cache import PageCache
from harness import Nvim
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

Open = tuple[RealChat, ChatServerThread]


@pytest.fixture
def opened(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> Iterator[Open]:
    """Yield a chat and its server."""
    with ChatServerThread(default=lambda received: reply("Fine."), key=KEY) as server:
        files = [("a.py", "class A:\n    def b(self):\n        pass\n")]
        yield start_chat(nvim_factory, tmp_path, server, files=files, size=(100, 40)), server


def attached(server: ChatServerThread) -> str:
    """Return the message before the question in the last request."""
    return str([m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "user"][-2])


def test_a_page_is_read_from_the_cache_and_a_private_one_never(opened: Open) -> None:
    """A message sent right after `/fetch` waits for the page; a refused URL is back in the input."""
    chat, server = opened
    chat.send("/fetch http://127.0.0.1:1/")
    chat.nvim.wait_screen(r"127\.0\.0\.1 is not fetched: it is this machine itself \(127\.0\.0\.1\)\.")
    chat.nvim.wait_screen(r"attach it\s+with /file")
    assert chat.draft() == "/fetch http://127.0.0.1:1/"
    cache = Path(chat.nvim.lua("return vim.fn.stdpath('cache') .. '/codecompanion'"))
    page = Fetched("https://example.org/x", b"<title>T</title><p>The text of this page.", "text/html")
    PageCache(cache / "pages").keep("https://example.org/x", page, now=time.time() - 600)
    chat.nvim.feed("Gdd")
    chat.send("/fetch example.org/x")
    chat.say("what does it say?")
    assert "The text of this page." in attached(server)
    chat.nvim.wait_screen("<page>https://example.org/x</page>")


def test_an_outline_a_terminal_and_the_time_are_attached(opened: Open) -> None:
    """Each is one line of the context block."""
    chat, server = opened
    chat.send("/symbols a.py")
    chat.nvim.wait_screen("<symbols>a.py</symbols>")
    chat.say("go")
    assert "class A  [1-3]\n  def b(self)  [2-3]" in attached(server)
    # On a busy machine Neovim sometimes does not show the first line of a terminal: the command repeats it.
    chat.nvim.command("tabnew | terminal while echo output from it; do sleep 1; done")
    chat.nvim.wait_screen("^output from it")
    chat.nvim.command("tabprevious")
    chat.send("/terminal 5")
    chat.nvim.wait_screen("<terminal>.*echo")
    chat.say("go")
    assert "output from it" in attached(server)
    chat.send("/now")
    chat.nvim.wait_screen(r"<now>\d{4}-\d\d-\d\d")
    chat.say("go")
    assert re.search(r"\w+, \d\d \w+ \d{4}, \d\d:\d\d:\d\d \(UTC[+-]\d{4}\)", attached(server))


def test_a_diff_is_attached_and_an_impossible_one_refused(opened: Open) -> None:
    """Outside a repository the command is back in the input."""
    chat, server = opened
    chat.send("/diff")
    chat.nvim.wait_screen(r"is\s+not\s+in\s+a\s+git\s+repository")
    assert chat.draft() == "/diff"
    work = chat.root / "work"
    for arguments in (["init"], ["add", "."]):
        subprocess.run(["git", *arguments], cwd=work, check=True, capture_output=True)
    chat.nvim.feed("Gdd")
    chat.send("/diff staged")
    chat.nvim.wait_screen("<diff>staged</diff>")
    chat.say("go")
    assert "+class A:" in attached(server)
    chat.send("/terminal")
    chat.nvim.wait_screen("No terminal is open")
    chat.nvim.feed("Gdd")
    chat.send("/terminal 5001")
    chat.nvim.wait_screen("/terminal attaches up to 5000 lines")


def test_help_with_a_tag_is_attached_and_without_one_shown(opened: Open) -> None:
    """The entry at the tag is attached, not the file; for an unknown tag, the closest tag is suggested."""
    chat, server = opened
    chat.send("/help 'scrolloff'")
    chat.nvim.wait_screen("<help>:help 'scrolloff'</help>")
    chat.say("go")
    text = attached(server)
    assert "Minimal number of screen lines to keep above and below the cursor" in text
    assert len(text) < 3000
    chat.send("/help scrollofff_")
    chat.nvim.wait_screen("No help for scrollofff_")
    for tag, said in (("textwidth", "*'textwidth'*"), ("bufnr", "*bufnr()*"), ("vsplit", "*:vsplit*")):
        assert said in chat.nvim.lua("return (require('codecompanion.chat.sources.help_tags').text(...))", tag), tag
    complete = "return require('codecompanion.chat.sources.help_tags').complete(...)"
    assert "'scrolloff'" in chat.nvim.lua(complete, "scrollo")
    long = chat.nvim.lua("return (require('codecompanion.chat.sources.help_tags').text(...))", "ex-cmd-index").split(
        "\n"
    )
    assert re.fullmatch(r"… the entry continues at line \d+ of its file", long[-2])
    chat.nvim.feed("Gdd")
    chat.send("/help")
    chat.nvim.wait_screen("Send the message")


def test_fetch_without_a_page_and_stop_without_a_fetch_are_refused(opened: Open) -> None:
    """They are refused before the host is asked."""
    chat, _ = opened
    chat.send("/fetch")
    chat.nvim.wait_screen("/fetch takes one address")
    chat.nvim.feed("Gdd")
    chat.nvim.feed("q")
    chat.nvim.wait_screen("Nothing is running; <C-c> closes the chat")
