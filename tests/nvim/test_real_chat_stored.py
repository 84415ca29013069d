"""Titles and deletion of chats with the real host: `/title`, `/rename`, `chat.stored`."""

from __future__ import annotations

import pytest

from codecompanion.store.opening import open_store
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

LIST = """
local done
require("codecompanion.host").request("list_sessions", {}, function(err, rows) done = err or rows end)
vim.wait(60000, function() return done ~= nil end, 10)
return done
"""


@pytest.fixture
def chat(nvim_factory, tmp_path):
    with ChatServerThread(key=KEY, default=lambda received: reply("An answer.")) as server:
        yield start_chat(nvim_factory, tmp_path, server)


def title(chat: RealChat) -> str:
    return str(chat.nvim.lua("return vim.b.codecompanion_chat.title"))


def rows(chat: RealChat) -> dict[str, dict[str, object]]:
    return {row["id"]: row for row in chat.nvim.lua(LIST)}


def delete(chat: RealChat, chat_id: str) -> None:
    row = rows(chat)[chat_id]
    deleted = (
        "_G.gone = nil; require('codecompanion.chat.lists.stored_chats').delete(..., function() _G.gone = true end)"
    )
    chat.nvim.lua(deleted, row)


def test_a_chat_is_titled_by_its_first_words_until_the_user_renames_it(chat: RealChat) -> None:
    """The title and the questions are in the buffer variable and the list, even after closing and resuming."""
    chat.say("Why is the sky blue?")
    chat.nvim.wait_for(lambda: title(chat) == "Why is the sky blue?", "the title")
    chat.say("And at night?")
    chat.send("/title The colour of the sky")
    chat.nvim.wait_for(lambda: title(chat) == "The colour of the sky", "the new title")
    chat.send("/rename Sky")
    chat.nvim.wait_for(lambda: title(chat) == "Sky", "the newest title")
    row = rows(chat)[chat.id]
    assert (row["title"], row["first_question"], row["last_question"]) == (
        "Sky",
        "Why is the sky blue?",
        "And at night?",
    )
    chat_id = chat.id
    chat.nvim.lua("require('codecompanion.chat').close()")
    chat.nvim.lua("require('codecompanion.chat').resume(...)", chat_id)
    chat.nvim.wait_for(lambda: title(chat) == "Sky", "the title after resuming")


def test_only_a_closed_chat_is_deleted_and_only_after_confirmation(chat: RealChat) -> None:
    chat.say("Delete me")
    first = chat.id
    delete(chat, first)
    chat.nvim.feed("y")
    chat.nvim.wait_for(lambda: "close it before" in chat.nvim.lua("return vim.fn.execute('messages')"), "the refusal")
    chat.nvim.lua("require('codecompanion.chat').close()")
    delete(chat, first)
    chat.nvim.wait_screen(r"Delete “Delete me” permanently\? 1 turn  \[y\]es  \[n\]o")
    chat.nvim.feed("n")
    assert first in rows(chat)
    leave_and_come_back(chat, first)
    delete(chat, first)
    chat.nvim.feed("y")
    chat.nvim.wait_lua("return _G.gone")
    assert first not in rows(chat)


def leave_and_come_back(chat: RealChat, first: str) -> None:
    """Close and resume the chat at once; check that it keeps its lease, which used to be released after reopening."""
    chats = "local chats = require('codecompanion.chat')\n"
    chat.nvim.lua(chats + "chats.resume(...)", first)
    chat.wait_ready()
    chat.nvim.lua(chats + "chats.close() chats.resume(...)", first)
    chat.wait_ready()
    chat.nvim.wait_for(lambda: "An answer." in chat.text(), "the resumed chat")
    chat.nvim.wait_lua("return require('codecompanion.chat').current().attached == 'yes'")
    store = open_store(chat.root / "data" / "nvim" / "codecompanion")
    assert rows(chat)[first]  # the host has done what came before
    chat.nvim.wait_for(lambda: store.foreign_lease(first) is not None, "the chat to be ours again")
    chat.nvim.lua(chats + "chats.close()")
    chat.nvim.wait_for(lambda: store.foreign_lease(first) is None, "the chat given back")
    store.close()


def test_a_chat_being_deleted_cannot_be_opened(chat: RealChat) -> None:
    """A chat opened during its deletion used to continue in a missing log; typed text stays in the input."""
    chat.say("Delete me")
    first = chat.id
    chat.nvim.lua(
        """local id = ...
        require('codecompanion.chat').close()
        require('codecompanion.host').request('delete_session', { chat = id }, function() end)
        require('codecompanion.chat').resume(id)""",
        first,
    )
    chat.nvim.wait_screen("it may have been deleted")
    chat.send("hello?")
    chat.nvim.wait_for(lambda: chat.draft() == "hello?", "the words in the input again")
    assert first not in rows(chat)
