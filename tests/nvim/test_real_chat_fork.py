"""Edit and resend, `/fork`, `/fork list` in a real Neovim with the real host."""

from __future__ import annotations

import os
import signal

import pytest

from codecompanion.model.history import ChatForked, MessageAdded
from real_chat import KEY, RealChat, read_log, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

CHOOSE = """
vim.ui.select = function(items, opts, done)
  _G.lines = vim.tbl_map(opts.format_item, items)
  done(items[%d])
end
"""


def answer(received):
    return reply(f"Answer to {received.json['messages'][-1]['content']}.")


@pytest.fixture
def server():
    with ChatServerThread(key=KEY, default=answer) as server:
        yield server


@pytest.fixture
def chat(nvim_factory, tmp_path, server):
    chat = start_chat(nvim_factory, tmp_path, server, files=[("a.txt", "alpha\n")])
    for question in ("one", "two", "three"):
        chat.say(question)
    return chat


def sent(server) -> list[str]:
    return [message["content"] for message in server.requests[-1].json["messages"] if message["role"] != "system"]


def edit(chat: RealChat, text: str) -> None:
    row = next(number for number, line in enumerate(chat.nvim.lines(), 1) if line == text)
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row)
    chat.nvim.feed("g<CR>")
    chat.nvim.wait_for(lambda: chat.draft() == text, f"{text!r} in the input")


def hint(chat: RealChat) -> str:
    marks = chat.nvim.lua(
        "local ns = vim.api.nvim_get_namespaces()['codecompanion.chat.hint']"
        " return vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })"
    )
    return " ".join(chunk[0] for mark in marks for chunk in mark[3].get("virt_text", []))


def shown(chat: RealChat) -> list[str]:
    """Return the messages in the buffer."""
    lines = [line for line in chat.nvim.lines() if line and not line.startswith("## ")]
    return [line for line in lines if "Forked from" not in line]


def views(chat: RealChat) -> list[str]:
    return [message.text for message in chat.view().messages]


def test_an_edited_message_continues_in_a_branch(chat: RealChat, server) -> None:
    """The branch opens in the same window and shows the next request; the old branch is a separate chat."""
    old, window = chat.id, chat.nvim.lua("return vim.api.nvim_get_current_win()")
    edit(chat, "two")
    assert "editing · sends as a new branch · u cancels" in hint(chat)
    chat.nvim.feed("A and a half<Esc><CR>")
    chat.nvim.wait_for(lambda: "Answer to two and a half." in chat.text(), "the answer in the branch")
    chat.wait_state("idle")
    assert chat.id != old
    assert chat.nvim.lua("return vim.api.nvim_get_current_win()") == window
    assert sent(server) == ["one", "Answer to one.", "two and a half"]
    assert shown(chat) == views(chat) == ["one", "Answer to one.", "two and a half", "Answer to two and a half."]
    assert chat.draft() == ""
    assert chat.nvim.lua("return #require('codecompanion.chat').list()") == 1
    assert chat.nvim.lua("return vim.b.codecompanion_chat.title") == "one (2)"
    old_said = [e.payload.message.text for e in read_log(chat.root, old) if isinstance(e.payload, MessageAdded)]
    assert old_said[-1] == "Answer to three."
    chat.nvim.lua(CHOOSE % 1)
    chat.send("/fork list")
    chat.nvim.wait_for(lambda: chat.id == old, "the old branch")
    assert chat.nvim.lua("return _G.lines") == [
        "one · 3 turns · last: three", "   └ one (2) · 2 turns · last: two and a half · this chat",
    ]  # fmt: skip
    chat.nvim.wait_for(lambda: "Answer to three." in shown(chat), "the old branch on the screen")
    assert shown(chat) == views(chat)


@pytest.mark.parametrize("cancel", ["u", "ggVGd", "cccompletely new<Esc>"])
def test_an_edit_can_be_abandoned(chat: RealChat, server, cancel: str) -> None:
    """Undoing, or emptying the input, even within one insert, ends the edit; the next message is a normal one."""
    chat.type("a draft")
    edit(chat, "two")
    if cancel.startswith("cc"):
        chat.nvim.feed("cc<C-o>:stopinsert<CR>")  # emptied, then typed again
        chat.nvim.wait_for(lambda: "editing" not in hint(chat), "the end of the edit")
        chat.nvim.feed("icompletely new<Esc>")
    elif cancel == "u":
        chat.nvim.feed("u")
        assert chat.draft() == "a draft"
        chat.nvim.feed("<C-r>")
        assert "editing" in hint(chat)
        chat.nvim.feed("u")
    else:
        chat.nvim.feed("0D")
    chat.nvim.wait_for(lambda: "editing" not in hint(chat), "the end of the edit")
    old = chat.id
    chat.say("four")
    assert chat.id == old
    assert len(views(chat)) == 8


def test_attachments_stay_with_the_edited_message(chat: RealChat, server) -> None:
    chat.send("/file a.txt")
    chat.nvim.wait_for(lambda: "a.txt" in chat.text(), "the attachment")
    chat.say("four")
    chat.say("five")
    edit(chat, "four")
    chat.nvim.feed("A again<Esc><CR>")
    chat.nvim.wait_for(lambda: "Answer to four again." in chat.text(), "the answer")
    chat.wait_state("idle")
    assert "alpha" in sent(server)[-2]
    assert "- ↻ <file>a.txt</file>" in chat.text()


def test_fork_continues_in_a_copy(chat: RealChat, server) -> None:
    """The copy has its own title; the other chat stays unchanged and open."""
    old, before = chat.id, views(chat)
    chat.send("/fork Another way")
    chat.nvim.wait_for(lambda: chat.id != old and "Answer to three." in chat.text(), "the branch")
    assert shown(chat) == before
    chat.nvim.wait_for(lambda: chat.nvim.lua("return vim.b.codecompanion_chat.title") == "Another way", "its title")
    chat.say("four")
    assert views(chat)[:-2] == before
    assert chat.nvim.lua("return #require('codecompanion.chat').list()") == 2
    (forked,) = [event.payload for event in chat.log() if isinstance(event.payload, ChatForked)]
    assert (forked.from_chat, forked.from_title) == (old, "one")


def test_only_user_messages_can_be_edited(chat: RealChat) -> None:
    chat.nvim.lua("vim.fn.search('Answer to two')")
    chat.nvim.feed("g<CR>")
    chat.nvim.wait_for(
        lambda: "one of your messages" in chat.nvim.lua("return vim.fn.execute('messages')"), "a sentence"
    )
    assert chat.draft() == ""


def test_a_host_that_dies_leaves_the_text_in_the_input(chat: RealChat, server) -> None:
    """If the host is killed before creating the branch, nothing is created, the text remains, and resending works."""
    old = chat.id
    edit(chat, "two")
    pid = chat.host_pid()
    os.kill(pid, signal.SIGSTOP)
    chat.nvim.feed("A too<Esc><CR>")
    chat.nvim.settle()  # it is on its way to the host
    os.kill(pid, signal.SIGKILL)
    chat.nvim.wait_for(lambda: "Not sent. Your text is still in the input." in chat.text(), "a sentence")
    assert (chat.id, chat.draft()) == (old, "two too")
    assert "editing" in hint(chat)
    chat.nvim.feed("<CR>")
    chat.nvim.wait_for(lambda: "Answer to two too." in chat.text(), "the answer in the branch")
    chat.wait_state("idle")
    assert shown(chat) == views(chat)


def test_a_chat_open_in_another_neovim_is_continued_in_a_copy(chat: RealChat, nvim_factory, server) -> None:
    """The chat is read-only here; the branch can be written to."""
    old = chat.id
    other = start_chat(nvim_factory, chat.root, server)
    other.nvim.lua("require('codecompanion').resume(...)", old)
    other.nvim.wait_for(lambda: "open in another Neovim; close it there" in other.text(), "the note")
    other.send("/fork Mine")
    other.nvim.wait_for(lambda: other.id != old and "Answer to three." in other.text(), "the branch")
    other.say("four")
    assert "Answer to four." in other.text()
    assert len(views(chat)) == 6


def test_an_edit_survives_a_redraw(chat: RealChat, server) -> None:
    """After `:e` redraws the chat from the log, the input is still an edit, and messages it would drop are dimmed."""
    edit(chat, "two")
    chat.nvim.command("edit")
    chat.nvim.wait_for(lambda: "Answer to three." in chat.text() and "editing" in hint(chat), "the edit")
    dimmed = (
        "local ns = vim.api.nvim_get_namespaces()['codecompanion.chat.hint']"
        " for _, m in ipairs(vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })) do"
        " if m[4].hl_group == 'CodeCompanionUndone' then return vim.fn.getline(m[2] + 2) end end"
    )
    chat.nvim.wait_for(lambda: chat.nvim.lua(dimmed) == "two", "the dimmed messages")
    chat.nvim.feed("GA too<Esc><CR>")
    chat.nvim.wait_for(lambda: "Answer to two too." in chat.text(), "the answer in the branch")
    chat.wait_state("idle")
    assert shown(chat) == views(chat)


def test_ctrl_c_in_the_list_of_branches_chooses_none(chat: RealChat, server) -> None:
    """Neovim's numbered list, used earlier, reacted to the interrupt with a warning and a truncated traceback."""
    chat.say("four")
    chat.send("/fork")
    chat.nvim.wait_lua("return vim.b.codecompanion_chat.title:find('(2)', 1, true) ~= nil")
    chat.wait_state("idle")
    branch = chat.id
    chat.send("/fork list")
    chat.nvim.wait_screen("Branches of this chat")
    chat.nvim.press_ctrl_c(lambda: "Branches of this chat" not in chat.nvim.screen())
    assert chat.id == branch
    assert "failed" not in chat.nvim.lua("return vim.fn.execute('messages')")


def test_text_typed_while_the_branch_is_created_is_kept(chat: RealChat, server) -> None:
    """The host needs time for a long chat: text typed after <CR> is in the input of the branch."""
    edit(chat, "two")
    chat.nvim.lua(
        """local host = require('codecompanion.host')
        local request = host.request
        host.request = function(verb, payload, callback)
          if verb ~= 'fork_chat' then return request(verb, payload, callback) end
          _G.make = function() request(verb, payload, callback) end
        end"""
    )
    chat.nvim.feed("A and a half<Esc><CR>")
    chat.nvim.wait_lua("return _G.make ~= nil")
    chat.nvim.feed("Go and more words<Esc>")
    chat.nvim.lua("_G.make()")
    chat.nvim.wait_for(lambda: "Answer to two and a half." in chat.text(), "the answer")
    assert sent(server) == ["one", "Answer to one.", "two and a half"]
    assert "and more words" in chat.draft()
