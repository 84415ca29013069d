"""One chat in two Neovims: closing it hands it to the other, with the text typed in both."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codecompanion.store.lease import FOLDER, is_locked
from codecompanion.store.opening import open_store
from harness import Nvim, wait_until_gone
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

Factory = Callable[..., Nvim]
Pair = tuple[RealChat, RealChat, ChatServerThread]


def stored_draft(root: Path, chat: str) -> str:
    store = open_store(root / "data" / "nvim" / "codecompanion")
    try:
        return store.load_draft(chat)
    finally:
        store.close()


def resume(chat: RealChat, chat_id: str, said: str) -> None:
    chat.nvim.lua("require('codecompanion').resume(...)", chat_id)
    chat.nvim.wait_screen(said)
    chat.wait_ready()


@pytest.fixture
def pair(nvim_factory: Factory, tmp_path: Path) -> Iterator[Pair]:
    """Yield two Neovims and their server: the first has the chat, the second can only read it."""
    with ChatServerThread([reply("one"), reply("two"), reply("three")], key=KEY) as server:
        first = start_chat(nvim_factory, tmp_path, server)
        first.say("mine")
        second = start_chat(nvim_factory, tmp_path, server, opened=False)
        resume(second, first.id, "open in another Neovim; close it there")
        yield first, second, server


def leave(chat: RealChat) -> None:
    pid = chat.host_pid()
    chat.nvim.leave()
    wait_until_gone(pid)


@pytest.mark.parametrize("end", ["leave", "kill"])
def test_the_other_neovim_continues_once_the_first_closed_the_chat(pair: Pair, end: str) -> None:
    """The other Neovim's next action takes over the chat, as announced, including messages sent in the meantime."""
    first, second, server = pair
    first.say("still mine")
    if end == "leave":
        leave(first)
    else:
        os.kill(first.host_pid(), signal.SIGKILL)
        owners = second.root / "data" / "nvim" / "codecompanion" / FOLDER
        # its threads end one by one, and its files are closed with the last one
        second.nvim.wait_for(lambda: sum(map(is_locked, owners.glob("*.lock"))) == 1, "the end of the first host")
    second.say("now mine")
    assert [m.text for m in second.view().messages] == ["mine", "one", "still mine", "two", "now mine", "three"]
    wanted = ["mine", "one", "still mine", "two", "now mine"]
    assert [m["content"] for m in server.requests[-1].json["messages"]][-5:] == wanted
    said = [line for line in second.nvim.lines() if line and not line.startswith("#")]
    assert said == ["mine", "one", "still mine", "two", "now mine", "three"]
    assert second.draft() == ""


def test_the_drafts_of_both_are_merged_once(pair: Pair, tmp_path: Path) -> None:
    """Text typed into a copy is not the owner's draft; the next owner receives both, the previous owner's first."""
    first, second, _ = pair
    first.type("draft A")
    first.nvim.wait_for(lambda: stored_draft(tmp_path, first.id) == "draft A", "the draft to be stored")
    second.type("draft B")
    second.nvim.command("doautocmd BufLeave")
    second.nvim.feed("<CR>")
    second.nvim.wait_for(lambda: "another Neovim" in second.nvim.messages(), "why it was not sent")
    second.nvim.wait_for(lambda: second.draft() == "draft B", "the message in the input again")
    leave(first)
    assert stored_draft(tmp_path, second.id) == "draft A"
    second.nvim.command("edit")
    second.nvim.wait_for(lambda: second.draft() == "draft A\n\ndraft B", "both drafts")
    second.nvim.wait_for(lambda: stored_draft(tmp_path, second.id) == "draft A\n\ndraft B", "both to be stored")
    assert "another Neovim" not in second.text()


def test_sending_takes_the_chat_and_leaves_the_owners_draft_in_the_input(pair: Pair, tmp_path: Path) -> None:
    first, second, _ = pair
    first.type("draft A")
    leave(first)
    before = second.nvim.lua("return _G.cc_ended_at")
    second.send("from B")
    second.nvim.wait_for(lambda: second.nvim.lua("return _G.cc_ended_at > ...", before), "the end of the turn")
    assert [m.text for m in second.view().messages] == ["mine", "one", "from B", "two"]
    assert second.draft() == stored_draft(tmp_path, second.id) == "draft A"


def test_text_typed_into_a_copy_survives_its_neovim(pair: Pair, nvim_factory: Factory, tmp_path: Path) -> None:
    first, second, server = pair
    chat_id = first.id
    first.type("draft A")
    second.type("draft B")
    leave(second)
    leave(first)
    third = start_chat(nvim_factory, tmp_path, server, opened=False)
    resume(third, chat_id, "draft B")
    assert third.draft() == "draft A\n\ndraft B"
    leave(third)
    assert stored_draft(tmp_path, chat_id) == "draft A\n\ndraft B"
