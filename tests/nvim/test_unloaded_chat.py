"""Events in a chat while its buffer is unloaded (`:bd`): nothing that needs the user's attention is missed or lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from approvals import answered, ask
from chat_driver import ChatDriver
from codecompanion.wire import events

GO = "CodeCompanion approval"


@pytest.fixture
def hidden(chat: ChatDriver) -> ChatDriver:
    """Return a chat that continues in the host while its buffer is unloaded."""
    chat.accept("question")
    chat.nvim.command("enew")
    chat.nvim.command(f"bdelete {buffer_of(chat)}")
    return chat


def buffer_of(chat: ChatDriver) -> int:
    return int(chat.nvim.lua("return require('codecompanion.chat').list()[1].bufnr"))


def question(call_id: str = "c9") -> events.ApprovalRequested:
    return events.ApprovalRequested(call_id=call_id, name="run_command", title="rm", body="rm -rf build", filetype="sh")


def test_an_approval_is_announced_and_found(hidden: ChatDriver) -> None:
    """A notification says that the turn is waiting for the user, and the command leads to the question."""
    hidden.push(question())
    assert "Approval needed" in hidden.nvim.messages()
    hidden.nvim.command(GO)
    hidden.nvim.wait_for(lambda: hidden.sent("redraw_chat"), "the chat to be drawn again")
    hidden.push(events.Redrawn(), events.Restored(entries=(), first=True, last=True), question())
    assert hidden.nvim.messages().count("Approval needed") == 1
    hidden.nvim.feed("]a")
    hidden.nvim.feed("g2")
    assert answered(hidden) == [("c9", "once")]


def test_earlier_notices_are_shown_when_the_chat_is_reopened(hidden: ChatDriver) -> None:
    """The command line does not keep them; below the last message they are shown once and survive a redraw."""
    hidden.push(events.Notice(level=events.Severity.WARN, text="The rules could not be read."))
    user = events.Entry(kind="user", text="question", message_id="m1")
    for count, command in enumerate((f"buffer {buffer_of(hidden)}", "edit"), 1):
        hidden.nvim.command(command)
        hidden.nvim.wait_for(lambda wanted=count: len(hidden.sent("redraw_chat")) == wanted, "the chat drawn again")
        hidden.push(events.Redrawn(), events.Restored(entries=(user,), first=True, last=True))
        lines = [line for line in hidden.text().split("\n") if line]
        assert lines == ["## Me", "question", "! The rules could not be read.", "## Me"]


def test_an_open_approval_ends_with_its_answer(chat: ChatDriver) -> None:
    """If the buffer is unloaded meanwhile and the approval then answered or cancelled, no chat is shown as waiting."""
    chat.accept("question")
    ask(chat)
    chat.nvim.command("enew")
    chat.nvim.command(f"bdelete {buffer_of(chat)}")
    waits = "return require('codecompanion.chat.state.questions').elsewhere() or ''"
    assert "waiting for your approval" in chat.nvim.lua(waits)
    chat.push(events.ApprovalClosed(call_id="c9", decision="cancel"), events.TurnFinished(reason="stopped"))
    assert chat.nvim.lua(waits) == ""
    chat.nvim.command(GO)
    assert "No approval is pending" in chat.nvim.messages()


def test_the_draft_of_another_neovim_is_loaded_with_the_chat(chat: ChatDriver) -> None:
    """`:e` takes over a read-only chat together with the draft written in the other Neovim."""
    chat.opened(read_only=True, resumed=True)
    chat.push(events.Restored(entries=(), first=True, last=True))
    chat.nvim.feed("Gityped here<Esc>")
    chat.nvim.command("edit")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "the chat to be opened again")
    chat.opened(resumed=True, draft="written there")
    chat.push(events.Restored(entries=(), first=True, last=True))
    assert chat.input() == "written there\n\ntyped here"
    assert chat.sent("save_draft")[-1]["text"] == "written there\n\ntyped here"


def test_a_message_that_could_not_be_sent_is_a_draft_again(hidden: ChatDriver) -> None:
    """This also applies if the host refuses the message while the buffer is unloaded."""
    hidden.nvim.command(f"buffer {buffer_of(hidden)}")
    hidden.submit("important words")
    hidden.nvim.command("enew")
    hidden.nvim.command(f"bdelete {buffer_of(hidden)}")
    hidden.push(events.RequestFailed(verb="submit", error="The store is locked."))
    hidden.nvim.command(f"buffer {buffer_of(hidden)}")
    assert hidden.input() == "important words"


def test_the_title_is_updated(hidden: ChatDriver) -> None:
    hidden.push(events.TitleChanged(title="a new title"))
    assert hidden.nvim.lua("return require('codecompanion.chat').list()[1].title") == "a new title"


@pytest.mark.parametrize("stored", [True, False])
def test_a_message_sent_during_a_redraw_is_drawn_once(chat: ChatDriver, stored: bool) -> None:
    """If the result arrives after the buffer was emptied and before the log is drawn, no copy of the message stays."""
    number = chat.submit("the words")
    chat.nvim.command("edit")
    fate: events.Event = events.MessageSent(submit_id=number, message_id="u1", text="the words", tokens=2, cycle=1)
    if not stored:
        fate = events.SubmitFailed(submit_id=number, text="the words", error="The disk is full.")
    entry = events.Entry(kind="user", text="the words", message_id="u1")
    chat.push(fate, events.Redrawn(), events.Restored(entries=(entry,) if stored else (), first=True, last=True))
    assert chat.text().count("the words") == 1
    assert chat.input() == ("" if stored else "the words")


def test_an_edit_whose_branch_was_created_meanwhile_can_be_sent_again(chat: ChatDriver) -> None:
    """After `g<CR>`, `<CR>` and an immediate `:bd`, the text is in the input again and can be sent."""
    chat.accept("question")
    chat.answer("show_original", {"title": "", "text": "question", "filetype": "text", "state": ""})
    chat.nvim.feed("gg")
    chat.nvim.feed("g<CR>")
    chat.nvim.wait_for(lambda: chat.input() == "question", "the message in the input")
    chat.nvim.feed("<CR>")
    assert len(chat.sent("fork_chat")) == 1
    chat.nvim.command("enew")
    chat.nvim.command(f"bdelete {buffer_of(chat)}")
    chat.nvim.lua(
        """for _, request in ipairs(require('codecompanion.host').requests) do
             if request.verb == 'fork_chat' then request.callback(nil, 'branch') end
           end"""
    )
    chat.nvim.command(f"buffer {buffer_of(chat)}")
    entry = events.Entry(kind="user", text="question", message_id="m1")
    chat.push(events.Redrawn(), events.Restored(entries=(entry,), first=True, last=True))
    assert chat.input() == "question"
    chat.nvim.feed("<CR>")
    assert len(chat.sent("fork_chat")) == 2
    assert chat.sent("submit")[1:] == []


def test_a_chat_closed_right_after_its_resume_is_not_open(chat: ChatDriver) -> None:
    """Otherwise the host would keep it open and locked for other Neovims, with no buffer to close.

    A running host receives the open request at once, immediately followed by the close request.
    """
    chat.nvim.lua(
        """local chats = require('codecompanion.chat')
           chats.resume('0123456789abcdef')
           chats.close()
           chats.close(require('codecompanion.chat.life').replace(chats.last_chat(), 'fedcba9876543210'))"""
    )
    chat.nvim.settle()
    assert [request["chat"] for request in chat.sent("open_chat")] == [chat.id, "0123456789abcdef"]
    assert [request["chat"] for request in chat.sent("close_chat")] == ["0123456789abcdef"]


def test_a_chat_lost_by_the_host_is_opened_once_more(chat: ChatDriver) -> None:
    """If the redraw fails, the chat is reopened; if that fails too, the buffer reports it and stays usable."""
    chat.accept("question")
    chat.nvim.command("edit")
    chat.push(events.RequestFailed(verb="redraw_chat", error="The Python process no longer has this chat open."))
    assert [request.get("resume") for request in chat.sent("open_chat")] == [None, chat.id]
    chat.push(events.RequestFailed(verb="open_chat", error="No stored chat has the id; it may have been deleted."))
    assert "✗ No stored chat has the id; it may have been deleted." in chat.text()


def test_a_draft_that_cannot_be_stored_is_kept_and_reported_once(chat: ChatDriver) -> None:
    """On a full disk, one sentence says so, the text stays, saving is retried, and on exit it is saved to a file."""
    refuse = """for _, request in ipairs(require('codecompanion.host').requests) do
                  if request.verb == 'save_draft' and request.callback then
                    request.callback('cannot use sessions.db: the disk is full')
                    request.callback = nil
                  end
                end"""
    for count, word in enumerate(("one", "two", "three"), 1):
        chat.nvim.feed(f"A{word}<Esc>")
        chat.nvim.wait_for(lambda count=count: len(chat.sent("save_draft")) >= count, "save_draft")
        chat.nvim.lua(refuse)
    chat.nvim.settle()
    assert chat.nvim.messages().count("only in this Neovim") == 1
    assert chat.input() == "onetwothree"
    assert "disk is full" not in chat.text()
    chat.nvim.command("write")
    assert chat.sent("save_draft")[-1]["text"] == "onetwothree"
    chat.nvim.lua(refuse)
    chat.nvim.lua("require('codecompanion.chat.wire.unsent_text').keep(require('codecompanion.chat').list())")
    unsent = chat.nvim.lua("return vim.fn.stdpath('state') .. '/codecompanion/unsent.txt'")
    assert Path(unsent).read_text(encoding="utf-8") == "onetwothree\n"
