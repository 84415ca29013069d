"""File tools use the user's view of a file: real Neovim, real host, real files (lesson 53)."""

from __future__ import annotations

import asyncio

import pytest

from files_desk import TEXT, edit, edit_call, tool
from tests.providers.chat.answers import reply


def test_an_edit_is_shown_and_written_and_one_u_reverts_it(desk):
    user = desk(edit("line 5\n", "line five\nand a half\n"))
    buffer = user.open()
    user.nvim.feed("10Gma")
    user.say()
    assert user.lines(buffer)[3:7] == ["line 4", "line five", "and a half", "line 6"]
    assert user.disk() == TEXT.replace("line 5\n", "line five\nand a half\n")
    assert not user.is_modified(buffer)
    assert user.nvim.lua("return vim.api.nvim_buf_get_mark(..., 'a')[1]", buffer) == 11
    assert user.nvim.lua("return vim.api.nvim_win_get_cursor(0)[1]") == 11
    user.nvim.feed("u")
    assert user.lines(buffer) == TEXT.split("\n")[:-1]
    assert user.nvim.blocked() is False


def test_two_windows_and_folds_keep_their_view(desk):
    user = desk(edit("line 2\n", "line 2\nnew\nnew\n"))
    user.open()
    user.nvim.command("setlocal foldmethod=manual | 20,25fold | normal! 30Gzt")
    user.nvim.command("vsplit | setlocal foldmethod=manual | normal! 15Gzt")
    user.say()
    shown = user.nvim.lua(
        """return vim.tbl_map(function(win)
             return vim.api.nvim_win_call(win, function()
               return { vim.fn.line('w0'), vim.fn.line('.'), vim.fn.foldclosed(22), vim.fn.foldclosedend(22) }
             end)
           end, vim.api.nvim_tabpage_list_wins(0))"""
    )
    assert shown[0][:2] == [17, 17]
    assert shown[1] == [32, 32, 22, 27]


def test_the_model_reads_and_edits_unsaved_changes_and_nothing_is_written(desk):
    user = desk(
        tool("read_file", path="a.txt", start_line=1, end_line=2),
        tool("grep_search", query="typed by hand"),
        edit("typed by hand", "edited by the model"),
    )
    buffer = user.open()
    user.nvim.feed("ccI typed by hand<Esc>")
    for _ in range(3):
        user.say()
    read, found, edited = user.results()
    assert "1\tI typed by hand\n" in read
    assert "unsaved" in read
    assert "a.txt [unsaved in the editor]\n  1: I typed by hand" in found
    assert "unsaved changes" in edited
    assert user.lines(buffer)[:2] == ["I edited by the model", "line 2"]
    assert user.disk() == TEXT
    assert user.is_modified(buffer)
    user.nvim.feed("u")
    assert user.lines(buffer)[0] == "I typed by hand"


@pytest.mark.parametrize("runs", [True, False])
def test_format_on_save_runs_as_for_a_users_write_unless_disabled(desk, runs):
    """The result contains the formatted text, so that the model's next edit matches."""
    user = desk(edit("line 3\n", "LOUD  \n"), options={"save_with_autocmds": runs})
    buffer = user.open()
    user.nvim.command(r"autocmd BufWritePre *.txt silent %s/\s\+$//e")
    user.say()
    expected = "LOUD" if runs else "LOUD  "
    assert user.lines(buffer)[2] == expected
    assert user.disk().split("\n")[2] == expected
    assert ("format on save" in user.results()[0] and "+LOUD\n" in user.results()[0]) is runs
    user.nvim.feed("u")
    assert user.lines(buffer)[2] == "line 3"


def test_a_failing_formatter_does_not_prevent_the_save(desk):
    user = desk(edit("line 3\n", "three\n"))
    user.open()
    user.nvim.lua("vim.api.nvim_create_autocmd('BufWritePre', { callback = function() error('no formatter') end })")
    user.say()
    assert "three\n" in user.disk()
    assert not user.nvim.blocked()


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        (b"one\r\ntwo\r\n", "two", "2\nzwei", b"one\r\n2\r\nzwei\r\n"),
        (b"\xef\xbb\xbfone\ntwo\n", "two", "2", b"\xef\xbb\xbfone\n2\n"),
        ("grün\nblau\n".encode("latin-1"), "grün", "weiß", "weiß\nblau\n".encode("latin-1")),
        (b"one\rtwo\r", "two", "2", b"one\r2\r"),
        (b"ok \xff\xfe bytes \xc3\xa4\ntwo\n", "two", "2", b"ok \xff\xfe bytes \xc3\xa4\n2\n"),
    ],
)
def test_line_ends_encoding_and_marks_of_the_file_are_kept(desk, content, old, new, expected):
    user = desk(edit(old, new))
    (user.root / "a.txt").write_bytes(content)
    user.nvim.command("set fileformats=unix,dos,mac fileencodings=ucs-bom,utf-8,latin1")
    user.open()
    user.say()
    assert (user.root / "a.txt").read_bytes() == expected, user.results()
    assert user.nvim.lua("return vim.bo.modified") is False


def test_a_missing_final_newline_stays_missing_if_configured(desk):
    user = desk(edit("two", "2"), files=[("a.txt", "one\ntwo")])
    user.nvim.command("set nofixendofline")
    user.open()
    user.say()
    assert user.disk() == "one\n2"


@pytest.mark.parametrize("option", ["nomodifiable", "readonly"])
def test_a_locked_buffer_follows_the_file(desk, option):
    user = desk(edit("line 3\n", "three\n"))
    buffer = user.open()
    user.nvim.command(f"setlocal {option}")
    user.say()
    assert "three\n" in user.disk()
    user.nvim.wait_for(lambda: user.lines(buffer)[2] == "three", "the buffer to follow")


def test_unsaved_changes_in_a_locked_buffer_are_kept(desk):
    user = desk(edit("mine", "yours"))
    buffer = user.open()
    user.nvim.feed("ccmine<Esc>")
    user.nvim.command("setlocal nomodifiable")
    user.say()
    assert user.lines(buffer)[0] == "mine"
    assert user.disk() == TEXT
    assert "'modifiable' is off" in user.results()[0]


def test_a_failed_write_leaves_buffer_and_file_unchanged(desk):
    user = desk(edit("line 3\n", "three\n"))
    buffer = user.open()
    # Root may write anything: the write fails in an autocommand that stands for the system.
    user.nvim.command("autocmd BufWriteCmd a.txt throw 'E212: Cannot open file for writing'")
    user.say()
    assert "E212" in user.results()[0]
    assert "Nothing was changed" in user.results()[0]
    assert user.lines(buffer)[2] == "line 3"
    assert not user.is_modified(buffer)
    assert user.disk() == TEXT


@pytest.mark.parametrize("autoread", ["autoread", "noautoread"])
def test_a_command_that_changes_files_reloads_open_ones_without_a_prompt(desk, autoread):
    user = desk(tool("run_command", command="sed -i s/line/row/ a.txt b.txt; echo hi > new.txt"))
    user.nvim.command(f"set {autoread}")
    (user.root / "b.txt").write_text(TEXT)
    plain, mine, new = user.open(), user.open("b.txt"), user.open("new.txt")
    user.nvim.lua("vim.api.nvim_buf_set_lines(..., 0, 1, true, { 'mine' })", mine)
    user.nvim.command("tabfirst")
    user.say_and_approve("go")
    user.nvim.wait_for(lambda: user.lines(plain)[0] == "row 1", "the open file to be reloaded")
    user.nvim.wait_for(lambda: user.lines(new) == ["hi"], "the new file to be read")
    assert user.lines(mine)[0] == "mine"
    assert not user.nvim.blocked()
    assert user.nvim.lua("return vim.o.autoread") is (autoread == "autoread")


def test_a_file_is_created_under_its_waiting_buffer_and_deleted_under_one_that_keeps_its_text(desk):
    create = tool("create_file", path="new/a.py", content="print(1)\n")
    user = desk(create, tool("delete_file", path="new/a.py"))
    buffer = user.open("new/a.py")
    user.say()
    assert user.lines(buffer) == ["print(1)"]
    assert user.disk("new/a.py") == "print(1)\n"
    assert not user.is_modified(buffer)
    user.nvim.command("tabfirst")
    user.say_and_approve("delete")
    assert not (user.root / "new/a.py").exists()
    user.nvim.command("checktime")
    assert user.lines(buffer) == ["print(1)"]
    assert not user.nvim.blocked()
    assert "E211" not in user.nvim.messages()


def test_a_link_and_another_working_folder_resolve_to_the_same_buffer(desk):
    user = desk(edit("line 3\n", "three\n", path="link.txt"))
    (user.root / "sub").mkdir()
    (user.root / "link.txt").symlink_to("a.txt")
    buffer = user.open("a.txt")
    user.nvim.command("lcd sub")
    user.say()
    assert user.lines(buffer)[2] == "three"
    assert not user.is_modified(buffer)
    assert user.disk() == TEXT.replace("line 3\n", "three\n")


def test_text_typed_between_read_and_edit_is_kept(desk):
    """The change is recomputed for the current text."""
    user = desk(edit("line 30\n", "thirty\n"))
    buffer = user.open()
    user.nvim.lua(
        """local edit, once = require('codecompanion.files.edit_buffer'), false
           local change = edit.change
           edit.change = function(fields)
             if not once then
               once = true
               vim.api.nvim_buf_set_lines(fields.buffer, 0, 1, true, { 'typed' })
             end
             return change(fields)
           end"""
    )
    user.say()
    assert user.lines(buffer)[0] == "typed"
    assert user.lines(buffer)[29] == "thirty"
    assert user.disk() == TEXT
    assert user.is_modified(buffer)


@pytest.mark.slow("waits twice for the five seconds an editor has to answer")
def test_if_the_editor_does_not_answer_the_disk_counts_and_the_model_is_notified(desk):
    user = desk(edit("line 3\n", "three\n"))
    user.nvim.lua("require('codecompanion.host.editor_questions').answer = function() end")
    user.say()
    assert "three\n" in user.disk()
    assert "editor did not answer" in user.results()[0]


def test_a_file_attached_with_unsaved_changes_is_sent_as_displayed(desk):
    user = desk()
    user.open()
    user.nvim.feed("ccnot saved yet<Esc>")
    user.nvim.command("tabfirst")
    user.chat.send("/file a.txt")
    user.nvim.wait_screen("<file>a.txt</file>")
    (message,) = [m for m in user.chat.view().messages if m.tag == "file"]
    assert "not saved yet\nline 2" in message.text


def test_a_file_open_in_another_editor_is_changed_without_a_prompt(desk, nvim_factory, tmp_path):
    """Opening the file would cause a swap file prompt (ATTENTION), so the plugin does not open it."""
    user = desk(edit("line 5\n", "five\n"))
    other = nvim_factory(root=tmp_path / "other")
    other.command(f"set swapfile | edit {user.root / 'a.txt'} | call setline(1, 'theirs')")
    user.say()
    assert "five\n" in user.disk()
    assert not user.nvim.blocked()
    assert user.nvim.lua("return vim.fn.bufloaded('a.txt')") == 0


def test_a_hard_link_in_another_buffer_follows_and_its_unsaved_changes_stay(desk):
    user = desk(edit("line 5\n", "five\n"), edit("line 6\n", "six\n"))
    (user.root / "same.txt").hardlink_to(user.root / "a.txt")
    user.nvim.command("set backupcopy=yes")
    buffer, other = user.open(), user.open("same.txt")
    user.say()
    user.nvim.wait_for(lambda: user.lines(other)[4] == "five", "the other name to follow")
    user.nvim.feed("ccmine<Esc>")
    user.say()
    assert user.lines(buffer)[5] == "six"
    assert user.lines(other)[0] == "mine"
    assert not user.nvim.blocked()


def test_a_disk_change_between_read_and_edit_is_not_overwritten(desk):
    user = desk(edit("line 30\n", "thirty\n"))
    buffer = user.open()
    user.nvim.lua(
        """local edit, once = require('codecompanion.files.edit_buffer'), false
           local change = edit.change
           edit.change = function(fields)
             if not once then
               once = true
               local lines = vim.fn.readfile('a.txt')
               lines[1] = 'from somewhere else'
               vim.fn.writefile(lines, 'a.txt')
             end
             return change(fields)
           end"""
    )
    user.say()
    assert user.disk().startswith("from somewhere else\nline 2\n")
    assert "thirty\n" in user.disk()
    assert (user.lines(buffer)[0], user.lines(buffer)[29]) == ("from somewhere else", "thirty")


def test_typing_continues_while_the_file_changes(desk):
    """Insert mode and the text under the cursor stay, and earlier typing is its own undo step."""
    user = desk(edit("line 30\n", "thirty\n"))
    user.nvim.command("vsplit a.txt")
    buffer = user.nvim.lua("return vim.api.nvim_get_current_buf()")
    user.nvim.command("wincmd w")
    user.chat.type("go")
    user.nvim.lua(
        """local chat = require('codecompanion.chat').current()
           vim.cmd.wincmd('w')
           vim.api.nvim_feedkeys('10Gotyped', 'n', false)
           vim.schedule(function() require('codecompanion.chat.ui.submit').send(chat) end)"""
    )
    user.nvim.wait_for(lambda: user.lines(buffer)[30] == "thirty", "the edit")
    assert user.nvim.lua("return vim.api.nvim_get_mode().mode") == "i"
    user.nvim.feed(" on<Esc>")
    assert user.lines(buffer)[10] == "typed on"
    assert user.disk() == TEXT
    user.nvim.feed("u")
    user.nvim.feed("u")
    assert user.lines(buffer)[30] == "line 30"
    assert user.lines(buffer)[10] == "typed"


def test_an_edited_proposal_for_unsaved_text_is_applied_to_the_buffer(desk):
    """The approval shows the buffer's text, and the user's version of the proposal ends up there, unsaved."""
    user = desk(edit("line 2\n", "two\nand a half\n"), options={"yolo": False})
    buffer = user.open()
    user.nvim.feed("ccmine<Esc>")
    user.nvim.command("tabfirst")
    user.chat.send("go")
    user.chat.wait_state("awaiting_approval")
    user.nvim.wait_screen("The file has unsaved changes")
    user.chat.approve(TEXT.replace("line 1\nline 2\n", "mine\ntwo\n"))
    user.chat.wait_state("idle")
    assert user.lines(buffer)[:3] == ["mine", "two", "line 3"]
    assert user.disk() == TEXT
    assert "-and a half" in user.results()[0]
    user.nvim.wait_screen(r"insert_edit a.txt · \+1 −1 · edited by you · not saved")


@pytest.mark.slow("waits twice for the five seconds an editor has to answer")
def test_during_a_prompt_the_file_on_disk_counts_and_nothing_is_done_twice(desk):
    """Requests that the editor receives too late are not carried out; the buffer is reloaded."""
    call = edit_call("a.txt", "line 5\n", "five\n")
    asked = asyncio.Event()
    user = desk(reply(calls=[call], gate=asked))
    buffer = user.open()
    user.nvim.command("tabfirst")
    user.chat.send("go")
    user.nvim.wait_screen("waiting for the model|streaming")
    user.nvim.feed(':echo join(range(9), "\\n")<CR>')
    user.nvim.wait_for(user.nvim.blocked, "the prompt")
    user.server.release(asked)
    user.nvim.wait_for(lambda: "five\n" in user.disk(), "the edit")
    user.nvim.feed("<CR>")
    user.nvim.wait_for(lambda: user.lines(buffer)[4] == "five", "the buffer to follow")
    user.chat.wait_state("idle")
    assert user.disk().count("five") == 1
    assert not user.is_modified(buffer)
    assert "editor did not answer" in user.results()[0]
