"""The proposal of a file tool in a tab page: hunks, edits, answers, and every way it can end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from approvals import answered
from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from files_desk import edit
from real_chat import KEY, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

BEFORE = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n"
AFTER = "import os\nimport sys\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 22\n"


def propose(chat: ChatDriver, name: str = "insert_edit", call_id: str = "c1", **more: str) -> None:
    """Make a file tool ask for approval."""
    given = {"path": "/project/src/stack.py", "before": BEFORE, "after": AFTER} | more
    chat.push(
        events.ToolStarted(call_id=call_id, name=name, title=f"{name} src/stack.py"),
        events.ApprovalRequested(
            call_id=call_id, name=name, title="Edit src/stack.py", body="+import sys\n", filetype="diff", **given
        ),
    )


def open_view(chat: ChatDriver, key: str = "K", **more: str) -> None:
    """Ask for approval, go to the block and open the diff."""
    chat.accept("go")
    propose(chat, **more)
    chat.nvim.feed("]a" + key)
    chat.nvim.wait_for(lambda: tabs(chat) == 2, "the tab page of the diff")


def tabs(chat: ChatDriver) -> int:
    return len(chat.nvim.request("nvim_list_tabpages"))


def in_chat(chat: ChatDriver) -> bool:
    return bool(chat.nvim.lua("return require('codecompanion.chat').by_buffer() ~= nil"))


def accepted(chat: ChatDriver) -> str | None:
    """Accept and return the text that was sent."""
    chat.nvim.feed("g2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    text: str | None = chat.sent("approve")[-1].get("text")
    return text


def test_a_tab_page_shows_the_proposal_with_its_removed_lines(chat_everywhere: ChatDriver) -> None:
    """Added and removed lines are shown with filetype colours, and the cursor is on the first hunk.

    Vim's diff mode is not used.
    """
    chat = chat_everywhere
    open_view(chat)
    screen = chat.nvim.wait_screen(r"Edit .*src/stack.py  \+2 −1 · 2 hunks · g2 accept · g3 reject…")
    assert re.search(r"^−  +return 2$", screen, re.MULTILINE)
    assert re.search(r"^\+ +\d+     return 22$", screen, re.MULTILINE)
    assert " diff " in screen.splitlines()[0], "the first row of the tab names the file"
    assert not chat.nvim.lua("return vim.wo.diff")
    assert chat.nvim.lua("return vim.bo.filetype") == "python"
    assert chat.nvim.request("nvim_get_current_line") == "import sys"
    assert chat.nvim.lua("return vim.wo.number") is True
    assert "chat" not in chat.nvim.lua("return vim.wo.winhighlight .. vim.wo.statusline .. vim.wo.foldtext").lower()


def test_the_winbar_offers_the_keys_that_work_decisions_first(chat: ChatDriver) -> None:
    """All of them fit in 80 columns; `g?` lists the keys of the view, and `g1` only explains why it does nothing."""
    chat.nvim.command("set columns=80")
    open_view(chat, path="/project/src/a/long/path/to/a/file/stack.py")
    chat.nvim.wait_screen(r"Edit .*stack.py  \+2 −1 · g2 accept · g3 reject… · g1 always… · q back")
    chat.nvim.feed("g?")
    screen = chat.nvim.wait_screen("Accept, and choose what to allow from now on")
    assert "Accept the change; in Visual mode only the selected hunks" in screen
    assert "the call" not in screen
    assert "The proposed text can be edited before you accept it; u undoes an edit." in screen
    chat.nvim.feed("qq")
    chat.nvim.wait_for(lambda: tabs(chat) == 1, "the chat")


@pytest.mark.parametrize(
    ("columns", "bar"),
    [
        (40, " g2 accept · g3 reject… · q back"),
        (50, " g2 accept · g3 reject… · g1 always… · q back"),
        (20, " g2 accept · q back"),
    ],
)
def test_a_narrow_winbar_keeps_the_key_that_goes_back(nvim_factory, columns: int, bar: str) -> None:
    """The name of the file, which the tab line shows, is omitted first."""
    chat = make_chat(nvim_factory, size=(columns, 24))
    open_view(chat)
    chat.nvim.wait_for(lambda: bar in chat.nvim.screen().split("\n"), "the bar")
    assert "tack.py" in chat.nvim.screen().split("\n")[0]


@pytest.mark.parametrize("reason", [{"why": "CI runs it"}, {"narrowed": "text from https://example.org/ is here"}])
def test_always_is_not_offered_where_the_block_does_not_offer_it(chat: ChatDriver, reason: dict[str, str]) -> None:
    open_view(chat, **reason)
    assert "g1" not in chat.nvim.wait_screen("g2 accept · g3 reject… · q back · g5 skip hunk")
    chat.nvim.feed("g?")
    assert "g1" not in chat.nvim.wait_screen("Go back")
    chat.nvim.feed("qg1")
    chat.nvim.wait_screen(next(iter(reason.values())))
    assert chat.sent("approve") == []


def test_accepting_an_unedited_proposal_sends_no_text(chat: ChatDriver) -> None:
    """The tool writes its own proposal; the user is back in the chat."""
    open_view(chat)
    assert accepted(chat) is None
    assert answered(chat) == [("c1", "once")]
    assert tabs(chat) == 1
    assert in_chat(chat)


def test_a_hunk_is_skipped_and_restored_with_u(chat_everywhere: ChatDriver) -> None:
    """The text that is sent matches the text that is shown."""
    chat = chat_everywhere
    open_view(chat)
    chat.nvim.feed("g5")
    assert chat.nvim.lines() == BEFORE.replace("return 2", "return 22").rstrip("\n").split("\n")
    chat.nvim.feed("u")
    assert chat.nvim.lines() == AFTER.rstrip("\n").split("\n")
    chat.nvim.feed("]cg5")
    assert accepted(chat) == AFTER.replace("return 22", "return 2")


def test_vims_diff_keys_do_not_change_a_proposal(chat: ChatDriver) -> None:
    """`]a K do g1` used to write half a hunk, because 'linematch' had split it."""
    chat.nvim.command("set diffopt+=linematch:60")
    open_view(
        chat,
        before="if not start_idx then\n  start_idx = 1\nend\nreturn start_idx\n",
        after="start_idx = start_idx or 1\nreturn start_idx\n",
    )
    chat.nvim.feed("dodp")
    chat.nvim.settle()
    chat.nvim.feed("<Esc>")
    assert accepted(chat) is None


def test_selected_hunks_are_skipped_together(chat: ChatDriver) -> None:
    open_view(chat)
    chat.nvim.feed("ggVGg5")
    chat.nvim.feed("q")
    chat.nvim.wait_screen("all hunks skipped")
    chat.nvim.feed("]aK")
    assert accepted(chat) == BEFORE


def test_in_visual_mode_only_the_selected_hunks_are_accepted(chat: ChatDriver) -> None:
    """The command with a range accepts hunks too; a selection without hunks accepts nothing."""
    open_view(chat)
    chat.nvim.feed("4GVjg2")
    chat.nvim.wait_screen("No hunk in the selection")
    assert chat.sent("approve") == []
    chat.nvim.feed("2GVg2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    assert chat.sent("approve")[0]["text"] == AFTER.replace("return 22", "return 2")


@pytest.mark.parametrize("keys", [":e!<CR>", ":edit!<CR>"])
def test_rereading_the_view_restores_the_original_proposal(chat: ChatDriver, keys: str) -> None:
    """`:e!` used to empty the proposal, and accepting it emptied the file."""
    open_view(chat)
    chat.nvim.feed("ccmine<Esc>g5" + keys)
    chat.nvim.wait_for(lambda: chat.nvim.lines() == AFTER.rstrip("\n").split("\n"), "the proposal")
    assert accepted(chat) is None


@pytest.mark.parametrize("keys", [":bd!<CR>", ":bunload!<CR>", ":bw!<CR>"])
def test_a_view_with_an_unloaded_buffer_keeps_its_edits(chat: ChatDriver, keys: str) -> None:
    """The block shows that there are edits, and accepting uses the edited text."""
    open_view(chat)
    chat.nvim.feed("g5" + keys)
    chat.nvim.wait_for(lambda: tabs(chat) == 1 and in_chat(chat), "the chat")
    chat.nvim.wait_screen("with your changes")
    chat.nvim.feed("K")
    chat.nvim.wait_for(lambda: tabs(chat) == 2, "the diff")
    assert chat.nvim.lines() == BEFORE.replace("return 2", "return 22").rstrip("\n").split("\n")
    assert accepted(chat) == BEFORE.replace("return 2", "return 22")


@pytest.mark.parametrize("levels", [-1, 0, 1])
def test_the_end_of_the_text_is_known_without_undo(chat: ChatDriver, levels: int) -> None:
    chat.nvim.command(f"set undolevels={levels}")
    open_view(chat, before="b\nc", after="b\nc\n")
    chat.nvim.feed("g5")
    assert accepted(chat) == "b\nc"


def test_skipping_the_only_hunk_is_shown_on_the_block(chat: ChatDriver) -> None:
    text = "".join(f"line {number}\n" for number in range(60))
    open_view(chat, before=text, after=text.replace("line 33", "LINE 33"))
    chat.nvim.feed("g5")
    chat.nvim.wait_screen("line 33\n")
    chat.nvim.feed("q")
    chat.nvim.wait_screen("Edit src/stack.py .*all hunks skipped")
    chat.nvim.feed("]aK")
    assert accepted(chat) == text


@pytest.mark.parametrize(
    ("before", "after", "skipped"),
    [
        ("a\nb", "a\nb\n", "a\nb"),
        ("a\nb\n", "a\nb", "a\nb\n"),
        ("a\nb", "x\nb\n", "a\nb"),
        ("one", "", "one"),
        ("", "new\n", ""),
    ],
)
def test_the_final_newline_belongs_to_its_hunk(chat: ChatDriver, before: str, after: str, skipped: str) -> None:
    """A skipped hunk keeps the old ending and a restored hunk has the proposed one, whatever is edited elsewhere."""
    open_view(chat, before=before, after=after)
    chat.nvim.feed("Gg5u<C-r>")
    assert accepted(chat) == skipped


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("ggOfirst<Esc>", "first\n" + AFTER),
        ("ggdG", ""),
        ("Go<C-u>last<Esc>:w<CR>", AFTER + "last\n"),
        ("ccimport json<Esc>u", None),
    ],
)
def test_the_proposal_can_be_edited_before_it_is_accepted(chat: ChatDriver, keys: str, text: str | None) -> None:
    """Any edit is possible; if it is undone, the model's own text is accepted."""
    open_view(chat)
    chat.nvim.feed(keys)
    assert accepted(chat) == text


def test_a_last_line_without_a_newline_stays_without_one(chat: ChatDriver) -> None:
    """The proposal's own ending is kept."""
    open_view(chat, after="one\ntwo", before="one")
    chat.nvim.feed("ggIx<Esc>")
    assert accepted(chat) == "xone\ntwo"


@pytest.mark.parametrize("keys", ["q", ":tabclose<CR>", ":q<CR>", ":wq<CR>", "ZZ"])
def test_closing_keeps_the_question_and_the_edits(chat_everywhere: ChatDriver, keys: str) -> None:
    """This applies to every usual way to close.

    The block says that accepting uses the edited text, and reopening shows it.
    """
    chat = chat_everywhere
    open_view(chat)
    chat.nvim.feed("ccimport json<Esc>" + keys)
    chat.nvim.wait_for(lambda: tabs(chat) == 1 and in_chat(chat), "the chat")
    assert chat.sent("approve") == []
    chat.nvim.wait_screen(r"Edit src/stack.py .*with your changes")
    chat.nvim.feed("K")
    chat.nvim.wait_for(lambda: tabs(chat) == 2, "the diff")
    assert "import json" in chat.nvim.lines()
    chat.nvim.feed("q")
    assert accepted(chat) == AFTER.replace("import sys", "import json")


def test_rejecting_in_the_view_takes_a_reason_and_can_be_cancelled(chat: ChatDriver) -> None:
    """<C-c> leaves the diff unchanged."""
    open_view(chat)
    chat.nvim.feed("g3")
    chat.nvim.wait_screen("Reason for rejecting it")
    chat.nvim.feed("<C-c>")
    chat.nvim.wait_for(lambda: not chat.nvim.blocked(), "the prompt to close")
    assert tabs(chat) == 2
    assert chat.sent("approve") == []
    chat.nvim.feed("g3")
    chat.nvim.wait_screen("Reason for rejecting it")
    chat.nvim.feed("no sys<CR>")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    assert chat.sent("approve")[0]["reason"] == "no sys"
    assert chat.nvim.messages() == ""
    assert tabs(chat) == 1


def test_a_new_file_and_a_deletion_are_shown(chat: ChatDriver) -> None:
    """One side is empty; a deletion cannot be edited."""
    open_view(chat, name="create_file", before="")
    chat.nvim.wait_screen(r"src/stack.py  \+10 · g2 accept")
    assert accepted(chat) is None
    chat.push(events.ApprovalClosed(call_id="c1", decision="once"))
    propose(chat, name="delete_file", call_id="c2", after="")
    chat.nvim.feed("]aK")
    chat.nvim.wait_screen(r"src/stack.py  −9 · g2 accept")
    assert re.search(r"^− +\d+     return 2$", chat.nvim.screen(), re.MULTILINE)
    assert not chat.nvim.lua("return vim.bo.modifiable")
    chat.nvim.feed("g2")
    chat.nvim.wait_for(lambda: len(chat.sent("approve")) == 2, "approve")
    assert chat.sent("approve")[1].get("text") is None


def test_an_answer_in_the_chat_closes_the_tab_page(chat: ChatDriver) -> None:
    """This also applies when the user returns to the chat with `gt` and answers there."""
    open_view(chat)
    chat.nvim.feed("gt]ag2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    chat.push(events.ApprovalClosed(call_id="c1", decision="once"))
    assert tabs(chat) == 1
    assert buffers_left(chat) == []


def buffers_left(chat: ChatDriver) -> list[str]:
    names: list[str] = chat.nvim.lua(
        "return vim.tbl_filter(function(n) return vim.fs.basename(n):find('^Edit ') ~= nil end,"
        " vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs()))"
    )
    return names


@pytest.mark.parametrize("how", ["stopped", "host"])
def test_a_turn_that_ends_shows_that_and_keeps_the_view(chat: ChatDriver, how: str) -> None:
    """Typing in the proposal can continue, the answer keys report that the approval is closed, and `q` goes back."""
    open_view(chat)
    chat.nvim.feed("O# half a")
    if how == "stopped":
        chat.push(events.ApprovalClosed(call_id="c1", decision="cancel"), events.TurnFinished(reason="stopped"))
    else:
        chat.nvim.lua("require('codecompanion.host').on_events(vim.json.encode({ { type = 'host_exit' } }))")
        chat.drain()
    chat.nvim.feed(" word")
    assert chat.nvim.request("nvim_get_current_line") == "# half a word"
    chat.nvim.wait_screen("This approval is closed; nothing was written · q back")
    chat.nvim.feed("<Esc>g2")
    chat.nvim.wait_screen("This approval was already answered or cancelled")
    assert chat.sent("approve") == []
    chat.nvim.feed("q")
    assert tabs(chat) == 1
    assert in_chat(chat)
    assert buffers_left(chat) == []


def test_the_users_windows_are_unchanged_afterwards(nvim_factory) -> None:
    """The options of the previous window are restored, and leaving Neovim asks nothing."""
    chat = make_chat(nvim_factory, options={})
    chat.nvim.command("set number foldcolumn=2")
    chat.accept("go")
    options = "return { vim.wo.diff, vim.wo.foldmethod, vim.wo.scrollbind, vim.wo.winbar, vim.wo.wrap, vim.wo.number }"
    before = chat.nvim.lua(options)
    propose(chat)
    chat.nvim.feed("]aK")
    chat.nvim.wait_for(lambda: tabs(chat) == 2, "the diff")
    assert chat.nvim.lua("return vim.wo.number") is True
    chat.nvim.feed("ox<Esc>q")
    assert in_chat(chat)
    assert chat.nvim.lua(options) == before
    chat.nvim.command("tabnew | only")
    assert chat.nvim.lua("return vim.wo.diff") is False
    chat.nvim.notify_lua("vim.cmd('qa')")
    chat.nvim.wait_for(lambda: chat.nvim._ended, "Neovim to leave without a question")


def test_the_view_opens_from_a_float_and_returns_to_it(nvim_factory) -> None:
    """This works for a chat in a floating window."""
    chat = make_chat(nvim_factory, options={"display": {"chat": {"window": {"layout": "float"}}}})
    open_view(chat)
    assert chat.nvim.lua("return vim.api.nvim_win_get_config(0).relative") == ""
    chat.nvim.feed("q")
    assert in_chat(chat)
    assert tabs(chat) == 1


def test_a_file_too_large_to_compare_shows_its_diff_as_text(chat: ChatDriver) -> None:
    """In this case the host sends no file texts."""
    chat.accept("go")
    propose(chat, before="", after="")
    chat.nvim.feed("]aK")
    chat.nvim.wait_screen("╭ Edit src/stack.py")
    assert tabs(chat) == 1


def test_a_real_edit_is_changed_in_the_view_and_written(nvim_factory, tmp_path: Path) -> None:
    """The whole path is covered: model, host, keys, disk, and the result that the model reads."""
    with ChatServerThread([edit("one", "ONE\nuno", "a.py"), reply("done")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("a.py", "one\ntwo\n")])
        before = chat.finished()
        chat.send("edit it")
        chat.press_on_approval("K")
        chat.nvim.wait_screen("g2 accept · g3 reject… · g1 always… · q back")
        chat.nvim.feed("jccmine<Esc>g2")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the end")
        assert (tmp_path / "work" / "a.py").read_text() == "ONE\nmine\ntwo\n"
        told = str([message.text for message in chat.view().messages if message.role == "tool"])
        assert "-uno" in told
        assert "+mine" in told


def test_a_rejected_edit_is_proposed_again_with_u_on_its_line(nvim_factory, tmp_path: Path) -> None:
    """It is proposed in its file and keeps text typed there since; the palette lists it as well."""
    with ChatServerThread([edit("two", "TWO", "a.py"), reply("done")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("a.py", "one\ntwo\n")])
        before = chat.finished()
        chat.send("edit it")
        chat.press_on_approval("g3")
        chat.nvim.wait_screen("Reason for rejecting it")
        chat.nvim.feed("<CR>")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the end")
        chat.nvim.lua("_G.chat_win = vim.api.nvim_get_current_win()")
        chat.nvim.command("topleft split a.py")
        chat.nvim.feed("ggOzero<Esc>")
        chat.nvim.lua("vim.api.nvim_set_current_win(_G.chat_win)")
        chat.nvim.feed("gg/insert_edit<CR>u")
        chat.nvim.wait_lua("return vim.b.codecompanion_edit and vim.b.codecompanion_edit.changes == 1")
        assert chat.nvim.lines() == ["zero", "one", "two"]
        chat.nvim.feed("g2")
        chat.nvim.wait_for(lambda: chat.nvim.lines() == ["zero", "one", "TWO"], "the accepted change")
        assert (tmp_path / "work" / "a.py").read_text() == "one\ntwo\n"
        chat.nvim.feed("u")
        chat.nvim.wait_lua("return vim.b.codecompanion_edit ~= nil")
        chat.nvim.lua("vim.ui.select = function(items, o, done) _G.names = vim.tbl_map(o.format_item, items) end")
        chat.nvim.command("CodeCompanionActions")
        assert ":CodeCompanion reopen" in str(chat.nvim.wait_lua("return _G.names"))


def test_a_rejected_edit_is_proposed_in_a_file_opened_through_a_link(nvim_factory, tmp_path: Path) -> None:
    """The buffer's name differs from the file's path."""
    with ChatServerThread([edit("two", "TWO", "a.py"), reply("done")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("a.py", "one\ntwo\n")])
        (tmp_path / "work" / "link.py").symlink_to(tmp_path / "work" / "a.py")
        chat.nvim.lua("_G.chat_win = vim.api.nvim_get_current_win()")
        chat.nvim.command("topleft split link.py")
        chat.nvim.lua("vim.api.nvim_set_current_win(_G.chat_win)")
        before = chat.finished()
        chat.send("edit it")
        chat.press_on_approval("g3")
        chat.nvim.wait_screen("Reason for rejecting it")
        chat.nvim.feed("<CR>")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the end")
        chat.nvim.command("CodeCompanion reopen")
        chat.nvim.wait_lua("return vim.b.codecompanion_edit and vim.b.codecompanion_edit.changes == 1")
        chat.nvim.feed("g2")
        assert chat.nvim.lines() == ["one", "TWO"]


def test_rejecting_in_an_empty_buffer_leaves_it_empty(nvim_factory, tmp_path: Path) -> None:
    """The buffer's one line does not exist in the file; `:w` used to write a newline."""
    with ChatServerThread([reply("placement: replace\n```python\nprint(1)\n\nprint(2)\n```\n")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("empty.py", "")], opened=False)
        chat.nvim.command(f"edit {tmp_path}/work/empty.py")
        chat.nvim.feed(":CodeCompanion print one and two<CR>")
        chat.nvim.wait_lua("return vim.b.codecompanion_edit and vim.b.codecompanion_edit.state == 'proposed'")
        assert chat.nvim.lua("return vim.b.codecompanion_edit.changes") == 1
        chat.nvim.feed("g3")
        chat.nvim.wait_lua("return vim.b.codecompanion_edit == nil")
        chat.nvim.command("write")
        assert (tmp_path / "work" / "empty.py").read_bytes() == b""
        chat.nvim.command("CodeCompanion reopen")
        chat.nvim.wait_lua("return vim.b.codecompanion_edit ~= nil")
        chat.nvim.feed("g2")
        assert chat.nvim.lines() == ["print(1)", "", "print(2)"]


def test_the_block_shows_the_edited_proposal(chat: ChatDriver) -> None:
    """Its lines and its size are those that would be written."""
    open_view(chat)
    chat.nvim.wait_screen("2 hunks")
    chat.nvim.feed("g5")
    chat.nvim.feed("]cA # mine<Esc>q")
    chat.nvim.wait_for(lambda: in_chat(chat), "the chat")
    screen = chat.nvim.wait_screen(r"Edit src/stack.py   \+1 −1 .*with your changes")
    assert "import sys" not in screen
    assert "return 22 # mine" in screen
    chat.nvim.feed("Gg2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    assert chat.sent("approve")[0]["text"] == BEFORE.replace("return 2", "return 22 # mine")


def test_k_opens_the_only_approval_from_the_input(chat: ChatDriver) -> None:
    chat.accept("go")
    propose(chat)
    chat.nvim.feed("GK")
    chat.nvim.wait_for(lambda: tabs(chat) == 2, "the tab page of the diff")


def test_closing_the_chat_closes_its_questions(chat: ChatDriver) -> None:
    """The tab page shows that the approval is closed; nothing is sent for a closed chat."""
    open_view(chat)
    chat.nvim.lua("local c = require('codecompanion.chat'); c.close(c.last_chat())")
    chat.nvim.wait_screen("This approval is closed; nothing was written · q back")
    chat.nvim.feed("g2")
    chat.nvim.wait_screen("This approval was already answered or cancelled")
    chat.nvim.feed("q")
    chat.nvim.wait_for(lambda: buffers_left(chat) == [], "the diff to go")
    assert chat.sent("approve") == []
    assert not chat.nvim.lua("return vim.wo.diff or vim.wo.winfixbuf")


@pytest.mark.parametrize("in_diff", [True, False])
def test_a_redrawn_chat_keeps_the_edits(chat: ChatDriver, in_diff: bool) -> None:
    """The host sends the approval again, and the edited proposal is still there."""
    open_view(chat)
    chat.nvim.feed("ccimport json<Esc>" + ("" if in_diff else "q"))
    chat.nvim.lua(
        """local chat = require('codecompanion.chat').last_chat()
           require('codecompanion.chat.wire.redraw_chat').blank(chat)"""
    )
    assert "g2 accept" not in chat.text()
    propose(chat)
    if in_diff:
        assert "import json" in chat.nvim.lines()
        chat.nvim.feed("q")
    chat.nvim.wait_screen("with your changes")
    chat.nvim.feed("]a")
    assert accepted(chat) == AFTER.replace("import sys", "import json")


def test_a_buffer_changed_while_the_diff_was_open_is_shown_and_asked_about_again(nvim_factory, tmp_path: Path) -> None:
    """The proposal is compared with the user's unsaved text both times, and nothing is lost."""
    with ChatServerThread([edit("two", "TWO", "a.py"), reply("done")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("a.py", "one\ntwo\n")])
        chat.nvim.command("tabedit a.py")
        chat.nvim.feed("gT")
        before = chat.finished()
        chat.send("edit it")
        chat.press_on_approval("K")
        chat.nvim.wait_screen("g2 accept · g3 reject… · g1 always… · q back")
        chat.nvim.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.py'), 0, 0, false, { 'zero' })")
        chat.nvim.feed("g2")
        chat.nvim.wait_screen("a.py changed while the approval was open; here is the updated change.")
        chat.press_on_approval("K")
        chat.nvim.wait_screen("g2 accept · g3 reject… · g1 always… · q back")
        assert chat.nvim.lines() == ["zero", "one", "TWO"]
        chat.nvim.feed("g2")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the end")
        lines = chat.nvim.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('a.py'), 0, -1, false)")
        assert lines == ["zero", "one", "TWO"]
        assert (tmp_path / "work" / "a.py").read_text() == "one\ntwo\n"


def test_an_edited_proposal_survives_a_reload_of_the_chat(nvim_factory, tmp_path: Path) -> None:
    """After `:e` in a chat with a real host, the approval is drawn again with its edits."""
    with ChatServerThread([edit("two", "TWO", "a.py"), reply("done")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("a.py", "one\ntwo\n")])
        before = chat.finished()
        chat.send("edit it")
        chat.press_on_approval("K")
        chat.nvim.wait_screen("g2 accept · g3 reject… · g1 always… · q back")
        chat.nvim.feed("Gomine<Esc>q")
        chat.nvim.wait_screen("with your changes")
        chat.nvim.feed(":e<CR>")
        chat.nvim.wait_lua(
            "local c = require('codecompanion.chat').current() return c.awaiting == nil and #c.approvals == 1"
        )
        chat.nvim.wait_screen("with your changes")
        chat.press_on_approval("g2")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the end")
        assert (tmp_path / "work" / "a.py").read_text() == "one\nTWO\nmine\n"
