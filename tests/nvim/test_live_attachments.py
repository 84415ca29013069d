"""Live attachments in the user interface: the mark in the context block, the key, the line below a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chat_driver import ChatDriver
from codecompanion.model.messages import UPDATE_TAG
from codecompanion.wire import events
from harness import Nvim
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

TEXT = "".join(f"line {number} of the file\n" for number in range(1, 31))


@pytest.fixture
def live(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> Iterator[tuple[RealChat, ChatServerThread]]:
    """Yield a chat with a.py attached, and its server."""
    with ChatServerThread(default=lambda received: reply("Fine."), key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("a.py", TEXT)], size=(90, 40))
        chat.send("/file a.py")
        chat.nvim.wait_screen("↻ <file>a.py</file>")
        yield chat, server


def sent(server: ChatServerThread) -> list[str]:
    """Return the user messages of the last request."""
    return [m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "user"]


def test_unsaved_changes_are_sent_and_shown(live: tuple[RealChat, ChatServerThread]) -> None:
    """Changes that are typed but not written appear as a diff in the request and as one line in the chat."""
    chat, server = live
    chat.say("first")
    chat.nvim.command("tabedit a.py")
    chat.nvim.lua("vim.api.nvim_buf_set_lines(0, 6, 7, true, { 'line seven' })")
    chat.nvim.command("tabprevious")
    chat.say("second")
    update, question = sent(server)[-2:]
    assert question == "second"
    assert "-line 7 of the file\n+line seven" in update
    chat.nvim.wait_screen(r"↻ a.py · \+1 −1")
    chat.say("third")
    assert [text for text in sent(server) if "has changed" in text] == [update]
    assert server.refusals == []


def test_the_key_toggles_it_and_a_redraw_shows_the_same(live: tuple[RealChat, ChatServerThread]) -> None:
    """`gba` on the attachment's line stops sending changes of the file; the chat drawn from the log looks identical."""
    chat, server = live
    chat.nvim.feed("gg<Tab>jgba")
    chat.nvim.wait_for(lambda: "- <file>a.py</file>" in chat.text())
    (chat.root / "work" / "a.py").write_text(TEXT + "more\n")
    chat.say("first")
    assert not [text for text in sent(server) if "has changed" in text]
    chat.nvim.feed("gggba")
    chat.nvim.wait_for(lambda: "- ↻ <file>a.py</file>" in chat.text())
    chat.say("second")
    assert "+more" in sent(server)[-2]
    before = chat.text()
    chat.nvim.command("edit!")
    chat.nvim.wait_for(lambda: chat.text() == before, "the same chat, drawn again")
    assert [m.path for m in chat.view().messages if m.tag == UPDATE_TAG] == ["a.py"]


def test_once_is_an_option_of_the_command(live: tuple[RealChat, ChatServerThread]) -> None:
    """`/file --once` sets it; the newer attachment replaces the older one."""
    chat, _ = live
    chat.send("/file --once a.py")
    chat.nvim.wait_for(lambda: "- <file>a.py</file>" in chat.text() and "↻" not in chat.text())
    assert chat.nvim.lua("return require('codecompanion.chat.slash.attach_paths').complete_files('--o')") == ["--once"]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_line_of_an_update_fits(nvim_factory: Callable[..., Nvim], width: int) -> None:
    """The line fits at every width, even with a long path; the diff is in the fold."""
    from chat_driver import make_chat

    chat: ChatDriver = make_chat(nvim_factory, size=(width, 24))
    chat.accept("go")
    body = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\x00"
    title = "a/very/long/path/to/some/file_of_the_project.py · +1 −1"
    chat.push(events.FileUpdated(chat=chat.id, message_id="u1", title=title, body=body, tokens=123))
    line = next(line for line in chat.nvim.screen().split("\n") if "↻" in line)
    assert len(line.rstrip()) <= width
    assert "+1 −1" in line or width == 40
    assert "+new^@" in chat.text()


def test_the_key_elsewhere_gives_a_hint(nvim_factory: Callable[..., Nvim]) -> None:
    """In the input there is nothing to toggle."""
    from chat_driver import make_chat

    chat = make_chat(nvim_factory)
    chat.nvim.feed("Ggba")
    chat.nvim.wait_screen("No attached file or buffer here")
