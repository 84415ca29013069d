"""A tool's change in a buffer with unsaved changes: its mark follows the buffer, even when the change is discarded."""

from __future__ import annotations

import pytest

from files_desk import TEXT, edit, tool

ROW = r"▸ ✓ insert_edit a.txt · \+1 −1"


@pytest.fixture
def changed(desk):
    """Return a desk with a tool's change to line 5 of a buffer whose line 1 is changed too, and the buffer."""
    user = desk(edit("line 5\n", "five\n"))
    buffer = user.open()
    user.nvim.feed("ccmine<Esc>")
    user.say()
    user.nvim.command("tabfirst")
    user.nvim.wait_screen(ROW + " · not saved")
    return user, buffer


def wait_unmarked(user):
    user.nvim.wait_for(lambda: "· not saved" not in user.nvim.screen(), "the mark to go")


def go_to_change(user):
    user.nvim.feed("gg]e")


def test_the_mark_goes_when_the_buffer_is_saved(changed):
    user, _buffer = changed
    user.nvim.command("wall")
    wait_unmarked(user)
    user.nvim.wait_screen(ROW)
    assert user.disk() == TEXT.replace("line 1\n", "mine\n", 1).replace("line 5\n", "five\n", 1)
    shown, chat_id = user.chat.text(), user.chat.id
    user.nvim.lua("local chats, id = require('codecompanion.chat'), ... chats.close() chats.resume(id)", chat_id)
    user.nvim.wait_for(lambda: user.chat.text() == shown, "the same text in the reopened chat")
    go_to_change(user)
    user.nvim.feed("gX")
    user.nvim.wait_screen("Reverted a.txt. gX reapplies it.")
    assert user.disk() == TEXT.replace("line 1\n", "mine\n", 1)


def test_a_change_discarded_with_its_buffer_is_marked_and_can_be_reapplied(changed):
    user, buffer = changed
    user.nvim.lua("vim.api.nvim_buf_call(..., function() vim.cmd('edit!') end)", buffer)
    wait_unmarked(user)
    user.nvim.wait_screen(ROW + " · reverted")
    user.nvim.wait_screen("· a.txt no longer has the change.")
    user.nvim.command("CodeCompanionRevert")
    user.nvim.wait_screen(r"insert_edit a.txt +\+1 −1 +reverted")
    user.nvim.feed("q")
    assert user.disk() == TEXT
    go_to_change(user)
    user.nvim.feed("gX")
    user.nvim.wait_for(lambda: "five\n" in user.disk(), "the change to be reapplied")


def test_a_change_next_to_discarded_text_is_missing_too(desk):
    """The change overlaps with the user's own text, which is gone too, so that a merge alone does not find it."""
    user = desk(edit("line 2\n", "two\n"))
    buffer = user.open()
    user.nvim.feed("ccmine<Esc>")
    user.say()
    user.nvim.command("tabfirst")
    user.nvim.wait_screen("· not saved")
    user.nvim.command(f"bdelete! {buffer}")
    user.nvim.wait_screen(ROW + " · reverted")
    user.nvim.wait_screen("· a.txt no longer has the change.")


def test_a_resumed_chat_does_not_show_a_discarded_change_as_applied(changed):
    """The change was lost while the chat was closed, as with `:qa!`."""
    user, buffer = changed
    chat_id = user.chat.id
    user.nvim.lua("require('codecompanion.chat').close()")
    user.nvim.command(f"bdelete! {buffer}")
    user.nvim.lua("require('codecompanion.chat').resume(...)", chat_id)
    user.nvim.wait_screen(ROW + " · reverted")
    user.nvim.wait_screen("· a.txt no longer has the change.")
    user.chat.say("and now?")
    told = [m["content"] for m in user.server.requests[-1].json["messages"] if m["role"] == "user"]
    assert any("`a.txt` no longer has your change." in str(text) for text in told)


def test_gx_does_not_claim_to_revert_a_change_that_the_file_no_longer_has(desk):
    user = desk(edit("line 5\n", "five\n"))
    user.say()
    user.nvim.command("tabfirst")
    user.nvim.wait_screen(ROW)
    (user.root / "a.txt").write_text(TEXT)
    go_to_change(user)
    user.nvim.feed("gX")
    user.nvim.wait_screen("Nothing to revert: a.txt no longer has the change. gX reapplies it.")
    assert "Reverted" not in user.nvim.screen()
    user.nvim.wait_screen("· a.txt no longer has the change.")


def test_the_approval_of_a_command_names_the_files_it_would_read_unsaved(desk):
    """The row appears while a file in the folder of the command has unsaved changes, and goes when it is saved."""
    user = desk(edit("line 5\n", "five\n"), tool("run_command", command="cat a.txt"), options={"yolo": False})
    user.open()
    user.nvim.feed("ccmine<Esc>")
    user.nvim.command("tabfirst")
    user.chat.send("go")
    user.chat.wait_state("awaiting_approval")
    user.nvim.wait_screen("! The file has unsaved changes, so the edit will not be saved")
    user.chat.approve()
    user.chat.wait_state("idle")
    user.chat.send("and run it")
    user.chat.wait_state("awaiting_approval")
    user.nvim.wait_screen(r"! a.txt is not saved; the command uses the old file \(:wa saves it\)")
    user.nvim.command("wall")
    user.nvim.wait_for(lambda: ":wa saves" not in user.nvim.screen(), "the row to go")
    wait_unmarked(user)
    user.nvim.command("set columns=50 | tabnext")
    user.nvim.feed("Goline 41<Esc>")
    user.nvim.command("tabfirst")
    user.nvim.wait_screen(r"! a.txt is not saved; the command uses the old\n▎   file \(:wa saves it\)")
