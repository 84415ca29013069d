"""Replaced answers and cleared chats in a real Neovim with the real host."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread


@pytest.fixture
def chat(nvim_factory, tmp_path):
    numbers = itertools.count(1)

    def answer(received):
        return reply(f"Answer {next(numbers)},\nsecond line.")

    with ChatServerThread(key=KEY, default=answer) as server:
        yield start_chat(nvim_factory, tmp_path, server, size=(80, 24))


def screen(chat: RealChat) -> str:
    return chat.nvim.screen()


def views(chat: RealChat) -> list[str]:
    return [message.text.partition(",")[0] for message in chat.view().messages]


def regenerate(chat: RealChat) -> None:
    chat.wait_state("idle")
    before = chat.finished()
    chat.nvim.feed("gr")
    chat.nvim.wait_for(lambda: chat.finished() > before, "the new answer")
    chat.wait_state("idle")


def command(chat: RealChat, name: str) -> None:
    chat.nvim.feed(f":CodeCompanion{name}<CR>")


def folded(chat: RealChat, text: str) -> None:
    chat.nvim.wait_for(lambda: text in screen(chat), f"the fold {text!r}")


def test_a_replaced_answer_is_folded_and_restored_by_undo(chat: RealChat) -> None:
    """The fold names the key; after the undo, the newer answer is folded, and resuming draws the same blocks."""
    chat.say("question")
    regenerate(chat)
    folded(chat, "▸ replaced by a new reply · u undo · K original · 3 lines")
    assert "Answer 1" not in screen(chat)
    assert "Answer 2" in screen(chat)
    assert views(chat) == ["question", "Answer 2"]
    chat.nvim.lua("vim.fn.search('Answer 1', 'w')")
    chat.nvim.feed("zcu")
    folded(chat, "▸ newer reply, undone · <C-r> redo · K original · 3 lines")
    assert "Answer 1" in screen(chat)
    assert "Answer 2" not in screen(chat)
    assert views(chat) == ["question", "Answer 1"]
    chat_id = chat.id
    chat.nvim.lua("require('codecompanion.chat').close(); require('codecompanion.chat').resume(...)", chat_id)
    folded(chat, "▸ newer reply, undone · <C-r> redo · K original · 3 lines")
    assert "Answer 1" in screen(chat)
    chat.nvim.lua("vim.fn.search('Answer 2', 'w')")
    chat.nvim.feed("zcK")
    folded(chat, "Answer 2,")
    chat.nvim.feed("q")
    command(chat, "Redo")
    folded(chat, "▸ replaced by a new reply · u undo · K original · 3 lines")
    assert views(chat) == ["question", "Answer 2"]


def test_a_replaced_answer_is_settled_by_the_next_message(chat: RealChat) -> None:
    """No undo is offered that would change the answer to an earlier question.

    An answer replaced twice has two folds.
    """
    chat.say("question")
    regenerate(chat)
    regenerate(chat)
    chat.say("next")
    chat.nvim.wait_for(lambda: screen(chat).count("replaced by a new reply") == 2, "two folds")
    assert "u undo" not in screen(chat)
    assert views(chat) == ["question", "Answer 3", "next", "Answer 4"]


def test_a_key_that_must_wait_leaves_no_line_in_the_chat(nvim_factory, tmp_path):
    """The reason is true only until the reply is complete."""
    gate = asyncio.Event()
    with ChatServerThread([reply("one", gate=gate)], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(80, 24))
        chat.send("question")
        chat.wait_state("streaming")
        chat.nvim.feed("gr")
        chat.nvim.wait_screen("^Wait until the reply is complete, or stop it with q.")
        server.release(gate)
        chat.wait_state("idle")
        assert "Wait until" not in chat.text()


def test_a_cleared_chat_is_marked_in_one_line(chat: RealChat) -> None:
    """Undo restores everything, even after a resume; redo clears it again."""
    chat.say("question")
    chat.send("/clear")
    folded(chat, "Chat cleared · u undo")
    assert "question" not in chat.text()
    assert views(chat) == []
    chat_id = chat.id
    chat.nvim.lua("require('codecompanion.chat').close(); require('codecompanion.chat').resume(...)", chat_id)
    folded(chat, "Chat cleared · u undo")
    assert "question" not in chat.text()
    chat.nvim.lua("vim.fn.search('Chat cleared', 'w')")
    chat.nvim.feed("u")
    chat.nvim.wait_for(lambda: "Answer 1," in chat.text(), "everything")
    assert "Chat cleared" not in chat.text()
    assert views(chat) == ["question", "Answer 1"]
    command(chat, "Redo")
    folded(chat, "Chat cleared · u undo")
    assert views(chat) == []
    chat.say("afterwards")
    assert views(chat) == ["afterwards", "Answer 2"]
    assert "afterwards" in chat.text()
