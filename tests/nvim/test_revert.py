"""File changes are shown, listed and reverted, with a three-way merge against later changes."""

from __future__ import annotations

from files_desk import TEXT, edit, edit_call, tool
from tests.providers.chat.answers import reply


def go_to_change(user, name="insert_edit"):
    """Put the cursor on the fold of a change with `]e`."""
    user.nvim.command("tabfirst")
    user.nvim.feed("gg]e")
    assert name in user.nvim.lua("return vim.api.nvim_get_current_line()")


def test_the_fold_keeps_the_diff_and_gx_reverts_and_reapplies_the_change(desk):
    user = desk(edit("line 5\n", "five\nand more\n"), reply("I see."))
    buffer = user.open()
    user.say()
    user.nvim.command("tabfirst")
    user.nvim.wait_screen(r"▸ ✓ insert_edit a.txt · \+2 −1 +\[e go there · gX revert")
    user.nvim.feed("u")
    user.nvim.wait_screen(r"Nothing to undo in the input; \[e, then gX reverts the change of a.txt")
    assert "▎ 5 - line 5\n▎ 5 + five\n▎ 6 + and more\n" in user.chat.text()
    go_to_change(user)
    user.nvim.wait_screen(r"▸ ✓ insert_edit a.txt · \+2 −1 +gX revert\n")
    user.nvim.feed("K")
    user.nvim.wait_screen(r"\+ +6 and more")
    user.nvim.feed("q")
    user.nvim.feed("u")
    user.nvim.wait_screen("gX reverts this file change")
    user.nvim.command("CodeCompanionUndo")
    user.nvim.wait_screen(":CodeCompanionRevert reverts file changes")
    user.nvim.feed("gX")
    user.nvim.wait_screen(r"insert_edit a.txt · \+2 −1 · reverted")
    user.nvim.wait_screen("Reverted a.txt. gX reapplies it.")
    user.nvim.feed("u")
    user.nvim.wait_screen("gX reapplies this file change")
    assert "You reverted" not in user.nvim.screen(), "its line and the message say it"
    assert "gX revert\n" not in user.nvim.screen()
    assert user.disk() == TEXT
    assert user.lines(buffer)[4] == "line 5"
    assert not user.is_modified(buffer)
    user.chat.say("and now?")
    told = [m["content"] for m in user.server.requests[-1].json["messages"] if m["role"] == "user"]
    assert any("The user reverted your change of `a.txt`" in str(text) for text in told)
    assert not any("gX" in str(text) for text in told), "the keys are for the user"
    go_to_change(user)
    user.nvim.feed("gX")
    user.nvim.wait_for(lambda: "five\n" in user.disk(), "the change to be brought back")
    user.nvim.wait_for(lambda: "· reverted" not in user.nvim.screen(), "the mark to go")
    assert "<re" not in user.chat.text(), "markup is for the model"
    assert "> Context:" not in user.chat.text()
    shown, chat_id = user.chat.text(), user.chat.id
    user.nvim.lua("local chats, id = require('codecompanion.chat'), ... chats.close() chats.resume(id)", chat_id)
    user.nvim.wait_for(lambda: user.chat.text() == shown, "the same text in the reopened chat")


def test_later_changes_of_the_user_are_kept(desk):
    user = desk(edit("line 5\n", "five\n"))
    buffer = user.open()
    user.say()
    user.nvim.feed("20Gcctyped later<Esc>")
    go_to_change(user)
    user.nvim.feed("gX")
    user.nvim.wait_for(lambda: user.lines(buffer)[4] == "line 5", "the revert")
    assert user.lines(buffer)[19] == "typed later"
    assert user.is_modified(buffer)
    assert "five\n" in user.disk()


def test_a_conflict_changes_nothing_unless_the_user_wants_markers(desk):
    user = desk(edit("line 5\n", "five\n"))
    buffer = user.open()
    user.say()
    user.nvim.feed("5Gccmy own five<Esc>:w<CR>")
    user.nvim.lua(
        "vim.ui.select = function(items, opts, done) _G.asked, _G.choices, _G.done = opts.prompt, items, done end"
    )
    go_to_change(user)
    user.nvim.feed("gX")
    user.nvim.wait_lua("return _G.done ~= nil")
    assert "later changes overlap" in user.nvim.lua("return _G.asked")
    assert user.lines(buffer)[4] == "my own five"
    assert "my own five\n" in user.disk()
    user.nvim.lua("_G.done(_G.choices[2], 2)")
    user.nvim.wait_screen("You changed these lines too · Vg2 accepts the new lines · g5 keeps yours")
    assert user.nvim.lua("return vim.api.nvim_get_current_buf()") == buffer
    assert user.nvim.lua("return vim.api.nvim_get_current_line()") == "my own five"
    user.nvim.feed("Vg2")
    assert user.lines(buffer)[4] == "line 5"
    user.nvim.feed("u")
    assert user.lines(buffer)[4] == "my own five"
    user.nvim.wait_screen("You changed these lines too")
    user.nvim.feed("g5")
    user.nvim.wait_for(lambda: not user.nvim.lua("return vim.b.codecompanion_edit ~= nil"), "the end of the proposal")
    assert user.lines(buffer)[4] == "my own five"
    assert not user.is_modified(buffer)
    user.nvim.lua("_G.done = nil")
    user.nvim.feed("<C-w>p")
    go_to_change(user)
    user.nvim.feed("gX")
    user.nvim.wait_lua("return _G.done ~= nil")
    user.nvim.lua("_G.done(_G.choices[3], 3)")
    user.nvim.wait_for(lambda: any(line.startswith("<<<<<<< ") for line in user.lines(buffer)), "markers")
    text = "\n".join(user.lines(buffer))
    assert "<<<<<<< the file now\nmy own five\n=======\nline 5\n>>>>>>> before the change" in text
    assert "<<<<<<<" not in user.disk()


def test_created_and_deleted_files_are_reverted_without_the_editor_too(desk):
    """No buffer is open; the deleted file is restored byte for byte, with its permissions."""
    user = desk(
        tool("create_file", path="new/a.py", content="print(1)\n"),
        tool("delete_file", path="a.txt"),
        options={},
    )
    (user.root / "a.txt").write_bytes(b"caf\xe9\r\nno end")
    (user.root / "a.txt").chmod(0o750)
    user.say("create")
    user.say_and_approve("delete")
    assert not (user.root / "a.txt").exists()
    user.nvim.command("CodeCompanionRevert")
    user.nvim.wait_screen("delete_file a.txt +−2")
    user.nvim.feed("gX")
    user.nvim.wait_screen("│  revert a.txt ")  # done, and the list is open again
    assert (user.root / "a.txt").read_bytes() == b"caf\xe9\r\nno end"
    assert (user.root / "a.txt").stat().st_mode & 0o777 == 0o750
    user.nvim.feed("q:CodeCompanionRevert new/a.py<CR>")
    user.nvim.wait_for(lambda: not (user.root / "new/a.py").exists(), "the created file to go")


def test_a_created_file_with_later_changes_is_not_deleted(desk):
    user = desk(tool("create_file", path="new.py", content="print(1)\n"))
    user.say()
    (user.root / "new.py").write_text("print(2)\n")
    go_to_change(user, "create_file")
    user.nvim.feed("gX")
    user.nvim.wait_for(lambda: "Not changed: new.py (changed since then)." in user.nvim.messages(), "the refusal")
    assert (user.root / "new.py").read_text() == "print(2)\n"


def test_without_file_changes_the_review_says_so(desk):
    user = desk(reply("Hello."))
    user.say()
    user.nvim.command("CodeCompanionChanges")
    user.nvim.wait_for(lambda: "No files were changed in this chat." in user.nvim.messages(), "the message")


def test_a_turn_is_reverted_as_a_whole_and_listed_in_the_quickfix_list(desk):
    both = reply(
        calls=[
            *(edit_call("a.txt", f"line {number}\n", f"row {number}\n", f"c{number}") for number in (3, 30)),
            edit_call("b.txt", "one", "1", "c9"),
        ]
    )
    user = desk(both, files=[("a.txt", TEXT), ("b.txt", "one\n")])
    buffer = user.open()
    user.say()
    user.nvim.command("tabfirst")
    user.nvim.command("CodeCompanionChanges")
    user.nvim.wait_lua("return #vim.fn.getqflist() == 3")
    items = user.nvim.lua(
        "return vim.tbl_map(function(i) return { vim.fn.bufname(i.bufnr), i.lnum } end, vim.fn.getqflist())"
    )
    assert [(name.rsplit("/")[-1], line) for name, line in items] == [("a.txt", 3), ("a.txt", 30), ("b.txt", 1)]
    user.nvim.command("cclose | CodeCompanionRevert")
    user.nvim.wait_screen("File changes")
    place = user.nvim.lua("return { vim.api.nvim_get_current_win(), vim.api.nvim_win_get_position(0) }")
    user.nvim.feed("T")
    user.nvim.wait_screen("insert_edit b.txt .*reverted")
    now = user.nvim.lua("return { vim.api.nvim_get_current_win(), vim.api.nvim_win_get_position(0) }")
    assert now == place, "the list stays where it is"
    assert "Reverted 2 files." in user.nvim.messages()
    user.nvim.feed("q")
    assert user.disk("b.txt") == "one\n"
    assert user.disk() == TEXT
    assert user.lines(buffer) == TEXT.split("\n")[:-1]


def test_the_list_of_changes_says_what_gx_does_on_each_line(desk):
    user = desk(edit("line 5\n", "five\nand more\n"))
    user.say()
    user.nvim.command("CodeCompanionRevert")
    user.nvim.wait_screen(r"insert_edit a.txt +\+2 −1 +│[^§]*╰─+ gX revert · T")
    user.nvim.feed("gX")
    user.nvim.wait_screen(r"│ +revert a.txt +\+1 −2 +│\n[^§]*reverted +│[^§]*╰─+ gX reapply · T")
    assert "gX reapplies" not in user.nvim.messages(), "the list says it"
    user.nvim.feed("gX")
    user.nvim.wait_screen(
        r"│ +reapply a.txt +\+2 −1 +│\n.*│ +revert a.txt +\+1 −2 +reapplied +│\n[^§]*╰─+ gX revert · T"
    )
    assert "five\n" in user.disk()
    user.nvim.feed("GgX")
    user.nvim.wait_screen(r"insert_edit a.txt +\+2 −1 +reverted +│[^§]*╰─+ gX reapply · T")
    assert user.disk() == TEXT
    user.nvim.feed("q")
    user.nvim.command("CodeCompanionRevert a.txt")
    user.nvim.wait_screen("No tool changed a.txt, or the changes are already reverted")


def test_a_turn_with_several_files_is_reviewed_hunk_by_hunk(desk):
    """One line reports the turn; in the list, hunks are marked, reverted at most once, and shown as a diff."""
    both = reply(
        calls=[
            edit_call("b.txt", "one", "1", "c9"),
            *(edit_call("a.txt", f"line {number}\n", f"row {number}\n", f"c{number}") for number in (3, 30)),
        ]
    )
    user = desk(both, files=[("a.txt", TEXT), ("b.txt", "one\n")])
    user.say()
    user.nvim.command("tabfirst")
    user.nvim.wait_screen(r"▸ 2 files changed · \+3 −3 · gR review")
    user.nvim.feed("GgR")
    user.nvim.wait_lua("return vim.bo.filetype == 'qf' and #vim.fn.getqflist() == 3")
    said = user.nvim.lua("return vim.tbl_map(function(i) return i.text end, vim.fn.getqflist())")
    assert said == ["+1 −1 · 1", "+1 −1 · row 3", "+1 −1 · row 30"]
    user.nvim.wait_screen("CodeCompanion review · g. keys")
    user.nvim.feed("g?")
    user.nvim.wait_screen("g3 +Revert this hunk, or reapply it")
    user.nvim.feed("q")
    texts = "return vim.tbl_map(function(i) return i.text:match('^[^ ]+') end, vim.fn.getqflist())"
    user.nvim.feed("ggg2")
    user.nvim.wait_for(lambda: user.nvim.lua(texts)[0] == "✓", "the mark")
    assert user.nvim.lua("return vim.fn.line('.')") == 1
    user.nvim.feed("j")
    place = user.nvim.lua("return vim.fn.bufname(vim.fn.getqflist()[2].bufnr)").rsplit("/")[-1]
    assert place == "a.txt"
    user.nvim.feed("g3")
    user.nvim.wait_for(lambda: user.nvim.lua(texts)[1] == "↶", "the mark of the revert")
    assert user.disk() == TEXT.replace("line 30\n", "row 30\n")
    user.nvim.feed("gX")
    user.nvim.wait_for(lambda: user.nvim.lua(texts)[1] != "↶", "the place to come back")
    assert user.disk() == TEXT.replace("line 30\n", "row 30\n").replace("line 3\n", "row 3\n")
    user.nvim.feed("gX")
    user.nvim.wait_for(lambda: user.nvim.lua(texts)[1] == "↶", "the mark of the revert")
    user.nvim.feed("3GK")
    user.nvim.wait_lua("return vim.api.nvim_get_current_line() == 'row 30'")
    user.nvim.wait_screen(r"Changed a.txt  \+1 −1 · q back")
    assert user.nvim.lua("return vim.fn.expand('%:t')") == "Changed a.txt"
    user.nvim.feed("q")
    user.nvim.wait_lua("return vim.bo.filetype == 'qf'")
    user.nvim.feed("1Gg3")
    user.nvim.wait_for(lambda: user.disk("b.txt") == "one\n", "the file")
    user.nvim.wait_for(lambda: user.nvim.lua(texts)[:2] == ["↶", "↶"], "the marks")
    user.nvim.command("cclose | CodeCompanionRevert")
    user.nvim.wait_screen("File changes")
    user.nvim.wait_screen("revert a.txt")


def test_a_change_whose_only_hunk_is_reverted_counts_as_reverted(desk):
    user = desk(edit("line 5\n", "five\n"), reply("I see."))
    user.say()
    user.nvim.command("tabfirst")
    user.nvim.command("CodeCompanionChanges")
    user.nvim.wait_lua("return vim.bo.filetype == 'qf' and #vim.fn.getqflist() == 1")
    user.nvim.feed("gX")
    user.nvim.wait_lua("return #vim.fn.getqflist() == 1 and vim.fn.getqflist()[1].text:find('↶ reverted') ~= nil")
    assert "Reverted a.txt." in user.nvim.messages()
    user.nvim.command("cclose")
    user.nvim.wait_screen(r"insert_edit a.txt · \+1 −1 · reverted")
    assert user.disk() == TEXT
    user.chat.say("and now?")
    told = [str(m["content"]) for m in user.server.requests[-1].json["messages"] if m["role"] == "user"]
    assert any("The user reverted your change of `a.txt`" in text for text in told)
    user.nvim.command("edit")
    user.nvim.wait_screen(r"insert_edit a.txt · \+1 −1 · reverted")
    go_to_change(user)
    user.nvim.feed("gX")
    user.nvim.wait_for(lambda: "five\n" in user.disk(), "the change to be brought back")
    user.nvim.wait_for(lambda: "Reapplied a.txt." in user.nvim.messages(), "what was done")
    user.nvim.command("CodeCompanionChanges")
    user.nvim.wait_lua("return vim.bo.filetype == 'qf' and vim.fn.getqflist()[1].text:find('reverted') == nil")


def test_after_a_restart_the_fold_shows_the_diff_and_the_revert_still_works(desk, nvim_factory):
    user = desk(edit("line 5\n", "five\n"))
    user.say()
    user.nvim.command("CodeCompanion restart")
    chat_id = user.chat.id
    user.nvim.command("bwipeout!")
    user.nvim.lua("require('codecompanion.chat').resume(...)", chat_id)
    user.nvim.wait_screen(r"▸ ✓ insert_edit a.txt · \+1 −1")
    user.chat.wait_ready()
    go_to_change(user)
    user.nvim.feed("gX")
    user.nvim.wait_for(lambda: user.disk() == TEXT, "the revert")
    user.nvim.wait_screen("· reverted")
    user.nvim.command("bwipeout!")
    user.nvim.command(f"CodeCompanionChat Resume {chat_id}")
    user.nvim.wait_screen(r"▸ ✓ insert_edit a.txt · \+1 −1 · reverted")


def test_nothing_is_reverted_during_a_turn(desk):
    user = desk(edit("line 5\n", "five\n"), tool("run_command", command="true"))
    user.say()
    user.chat.send("and now a command, which asks even in YOLO mode")
    user.chat.wait_state("awaiting_approval")
    user.nvim.command("CodeCompanionRevert turn")
    user.nvim.wait_screen("^Wait until the reply is complete, or stop it with q, then revert.")
    user.nvim.lua("require('codecompanion.say').nothing()")
    go_to_change(user)
    user.nvim.feed("gX")
    user.nvim.wait_screen("^Wait until the reply is complete, or stop it with q, then revert.")
    assert "five\n" in user.disk()
    assert "Wait until" not in user.chat.text()


def test_the_line_of_a_turn_follows_its_changes_and_is_redrawn_with_the_chat(desk):
    """The line is correct live, after `:edit` and in a resumed chat.

    `gR` on it reviews that turn, whatever came later.
    """
    both = reply(
        calls=[edit_call("b.txt", "one", "1", "c9"), edit_call("a.txt", "line 3\n", "row 3\n", "c1")],
    )
    user = desk(both, edit("line 30\n", "row 30\n"), files=[("a.txt", TEXT), ("b.txt", "one\n")])
    user.say()
    user.say("more")
    user.nvim.command("tabfirst")
    line = r"▸ 2 files changed · \+2 −2 · gR review"
    user.nvim.wait_screen(line)
    for place, said in (
        ("gg/files changed<CR>", r"Several file changes; \[e goes to a\.txt above"),
        ("G", r"No file change on this line; \[e goes to a\.txt above"),
        ("gg", r"No file change on this line; ]e goes to b\.txt below, :CodeCompanionRevert lists all"),
    ):
        user.nvim.feed(place + "gX")
        user.nvim.wait_screen(said)

    def review():
        user.nvim.command("tabfirst")
        user.nvim.feed("gg/files changed<CR>gR")
        user.nvim.wait_lua("return vim.bo.filetype == 'qf'")
        return user.nvim.lua("return vim.tbl_map(function(i) return i.text end, vim.fn.getqflist())")

    assert review() == ["+1 −1 · 1", "+1 −1 · row 3"]
    user.nvim.feed("gX")
    user.nvim.wait_screen(r"▸ 2 files changed · \+1 −1 · 1 reverted · gR review")
    user.nvim.feed("2GgX")
    user.nvim.wait_screen(r"▸ 2 files changed · all reverted · gR review")
    assert user.disk() == TEXT.replace("line 30\n", "row 30\n")
    user.nvim.feed("gX")
    partly = r"▸ 2 files changed · \+1 −1 · 1 reverted · gR review"
    user.nvim.wait_screen(partly)
    user.nvim.command("cclose")
    user.nvim.command("edit")
    user.nvim.wait_screen(partly)
    assert user.chat.text().count("files changed") == 1
    chat_id = user.chat.id
    user.nvim.command("CodeCompanion restart")
    user.nvim.command("bwipeout!")
    user.nvim.lua("require('codecompanion.chat').resume(...)", chat_id)
    user.chat.wait_ready()
    user.nvim.wait_screen(partly)
    assert review() == ["↶ reverted: +1 −1 · 1", "+1 −1 · row 3"]
    user.nvim.command("cclose")
    user.nvim.feed("GgR")
    user.nvim.wait_lua("return vim.bo.filetype == 'qf'")
    assert user.nvim.lua("return vim.fn.getqflist()[1].text") == "+1 −1 · row 30"
