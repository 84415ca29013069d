"""A message stored by a host that died before confirming it is neither lost nor duplicated."""

from __future__ import annotations

import os
import signal
import sqlite3
import time

import pytest

from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import Message
from codecompanion.store.log.event_rows import append_events
from codecompanion.store.opening import open_store
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

OUTGOING = "return require('codecompanion.chat').current().outgoing[1].key"


@pytest.fixture
def chat(nvim_factory, tmp_path):
    with ChatServerThread(key=KEY, default=lambda received: reply("An answer.")) as server:
        yield start_chat(nvim_factory, tmp_path, server)


def typed(chat: RealChat) -> list[str]:
    return [m.text for m in chat.view().messages if m.role == "user" and not m.tag]


def kill_after_storing(chat: RealChat, text: str, *, stored: bool) -> None:
    """Send a message to a host that is killed before confirming it, either after storing it (`stored`) or before."""
    pid = chat.host_pid()
    os.kill(pid, signal.SIGSTOP)
    chat.send(text)
    key = chat.nvim.lua(OUTGOING)
    if stored:
        message = Message(id="stored", role="user", content=text, cycle=2, turn_id="t")
        with sqlite3.connect(chat.root / "data" / "nvim" / "codecompanion" / "sessions.db") as connection:
            append_events(connection, chat.id, [MessageAdded(message=message, submit=key)], time.time())
        connection.close()
    os.kill(pid, signal.SIGKILL)


def test_a_stored_message_is_shown_as_sent_and_not_as_a_draft(chat: RealChat) -> None:
    """The host is restarted to check; `/continue` makes the model answer."""
    chat.say("first")
    kill_after_storing(chat, "second\nline", stored=True)
    chat.nvim.wait_for(lambda: "Your message was stored" in chat.text(), "the confirmation")
    assert chat.draft() == ""
    assert chat.text().count("second\nline") == 1
    before = chat.finished()
    chat.send("/continue")
    chat.nvim.wait_for(lambda: chat.finished() > before, "the answer")
    assert typed(chat) == ["first", "second\nline"]
    assert chat.text().count("An answer.") == 2


def test_an_unstored_message_returns_once(chat: RealChat) -> None:
    """The message is a draft; if it is edited and sent again, it is one message."""
    chat.say("first")
    kill_after_storing(chat, "second", stored=False)
    chat.nvim.wait_lua("return require('codecompanion.chat').current().attached == 'yes'")
    chat.nvim.wait_for(lambda: chat.draft() == "second", "the draft")
    before = chat.finished()
    chat.nvim.feed("G0ithird <Esc><CR>")
    chat.nvim.wait_for(lambda: chat.finished() > before, "the end of the turn")
    assert typed(chat) == ["first", "third second"]


def test_a_saved_draft_is_gone_once_it_was_sent(chat: RealChat) -> None:
    """A typing pause saves half a message; once the whole message is sent, no part of it reappears with the chat."""
    chat.type("half a mess")
    chat.nvim.wait_lua("return require('codecompanion.chat').current().draft.saved == 'half a mess'")
    chat.nvim.feed("Aage<Esc><CR>")
    chat.nvim.wait_for(lambda: "An answer." in chat.text(), "the answer")
    chat.wait_state("idle")
    chat_id = chat.id
    chat.nvim.kill9()
    store = open_store(chat.root / "data" / "nvim" / "codecompanion")
    try:
        assert store.load_draft(chat_id) == ""
    finally:
        store.close()
