"""Gathered code in the buffer: one folded line, its list, `/context`, and completion (R-213, R-268)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.retrieval.mentions import mentions_in
from codecompanion.session.toolbox.tool_groups import BUILT_IN
from codecompanion.wire import events
from codecompanion.wire.events import Severity
from codecompanion.workspace.named_files import files_named

BODY = "src/stack.py:10-42 of 900 · class Stack · ast 0.82\nREADME.md · common 1.00"
TITLE = "2 snippets from 2 files"
LONG = f"{TITLE}, 11 already sent"
SECRET = "Sent with 1 secret file because you named it: deploy/production/certificates/clients.pem"
REPORT = {
    "title": TITLE,
    "text_title": "Sent to the model:",
    "head": ["400 of 4,000 tokens · 140 ms", "about api · high confidence, by keywords"],
    "rows": [
        {"path": "src/stack.py", "start": 10, "end": 42, "what": "src/stack.py:10-42 Stack", "source": "ast",
         "score": 0.82, "tokens": 310, "state": "in", "why": "", "kind": "class", "name": "Stack"},
        {"path": "README.md", "start": 0, "end": 0, "what": "README.md", "source": "common", "score": 1.0,
         "tokens": 90, "state": "in", "why": ""},
        {"path": "big.py", "start": 1, "end": 900, "what": "big.py:1-900", "source": "search", "score": 0.31,
         "tokens": 9000, "state": "out", "why": "the budget is used up"},
    ],
    "text": "### File: src/stack.py", "root": "", "can_choose": True,
}  # fmt: skip


def gathered(**fields) -> events.CodeGathered:
    given = {"message_id": "code1", "title": TITLE, "body": BODY, "tokens": 3100, "duration_ms": 140}
    return events.CodeGathered(**(given | fields))


def ask(chat: ChatDriver, **fields) -> None:
    """Send a message to which code is added."""
    chat.accept("Why is it empty?")
    chat.push(gathered(**fields))


def test_one_folded_line_is_below_the_message(chat_everywhere: ChatDriver) -> None:
    chat = chat_everywhere
    ask(chat)
    chat.reply("Because.")
    screen = chat.nvim.wait_screen(r"▸ 2 snippets from 2 files · ~3\.1k tokens · 140 ms +K show · why: /context")
    assert "src/stack.py" not in screen
    lines = chat.text().split("\n")
    assert lines.index("Why is it empty?") < lines.index("▾ 2 snippets from 2 files · ~3.1k tokens · 140 ms")
    assert lines.index("▾ 2 snippets from 2 files · ~3.1k tokens · 140 ms") < lines.index("Because.")
    chat.toggle_fold("2 snippets")
    chat.nvim.wait_screen(r"  src/stack.py:10-42 of 900 · class Stack · ast 0\.82")


@pytest.mark.parametrize(
    ("columns", "title", "shown"),
    [
        (40, TITLE, r"▸ 2 snippets from 2 files · ~3\.1k tokens *\n"),
        (40, LONG, r"▸ 2 snippets from 2 files · ~3\.1k tokens *\n"),
        (60, LONG, r"▸ 2 snippets from 2 files, 11 already sent · ~3\.1k tokens *\n"),
        (80, LONG, r"▸ 2 snippets from 2 files, 11 already sent · ~3\.1k tokens +K show · /context"),
        (60, TITLE, r"▸ 2 snippets from 2 files · ~3\.1k tokens +K show · /context"),
        (80, TITLE, r"▸ 2 snippets from 2 files · ~3\.1k tokens · 140 ms +K show · why: /context"),
        (200, TITLE, r"▸ 2 snippets from 2 files · ~3\.1k tokens · 140 ms +K show · why: /context"),
    ],
)
def test_the_line_fits_every_width_and_shows_its_cost(nvim_factory, columns: int, title: str, shown: str) -> None:
    """The key hint is dropped before the price."""
    chat = make_chat(nvim_factory, size=(columns, 24))
    ask(chat, title=title)
    screen = chat.nvim.wait_screen(shown)
    line = next(line for line in screen.split("\n") if "▸ " in line)
    assert len(line.rstrip()) <= columns
    chat.push(events.ViewMarks(undone=(), cleared=("code1",), pinned=()))
    row = next(i for i, line in enumerate(chat.text().split("\n"), 1) if "snippets" in line)
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row)
    chat.nvim.wait_screen(r"▸ 1?2 snippets.* · cleared" + (r" +K original · r restore" if columns > 40 else ""))


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_sent_secret_file_is_visible_at_every_width(nvim_factory, columns: int) -> None:
    """R-266: the warning has its own line below the message."""
    chat = make_chat(nvim_factory, size=(columns, 24))
    ask(chat)
    chat.push(events.Notice(text=SECRET, level=Severity.INFO))
    screen = chat.nvim.wait_screen("Sent with 1 secret")
    shown = "".join(
        line.rstrip() if len(line.rstrip()) == columns else line.rstrip() + " " for line in screen.split("\n")
    )
    assert SECRET.replace(" ", "") in shown.replace(" ", "")
    assert "…" not in screen


def test_cleared_code_is_marked_and_can_be_restored(chat: ChatDriver) -> None:
    ask(chat)
    chat.reply("Because.")
    edited = events.ContextEdited(
        cleared=3, code=1, tokens_before=48200, tokens_after=21700, call_ids=("", "c1", "c2"), change_id="e1",
        changed=("code1",),
    )  # fmt: skip
    chat.push(edited)
    chat.nvim.wait_screen(r"✂ 2 tool results and code for 1 message cleared · 48\.2k → 21\.7k tokens")
    chat.nvim.wait_screen("▸ 2 snippets from 2 files · cleared *\n")
    chat.answer("restore_message", "Restored.")
    row = next(i for i, line in enumerate(chat.text().split("\n"), 1) if "2 snippets" in line)
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row)
    chat.nvim.feed("r")
    chat.nvim.wait_for(lambda: chat.sent("restore_message"), "the request to restore")
    assert chat.sent("restore_message")[0]["item"] == "code1"
    chat.push(events.ViewMarks(undone=(), cleared=(), pinned=()))
    chat.nvim.wait_screen(r"▸ 2 snippets from 2 files · ~3\.1k tokens · 140 ms")


def test_a_stored_chat_shows_the_same_line(chat: ChatDriver) -> None:
    entries = (
        events.Entry(kind="user", text="Why?", message_id="m1", number=1),
        events.Entry(kind="gathered", title=TITLE, text=BODY, message_id="code1", tokens=3100, duration_ms=2140),
        events.Entry(kind="reply", text="Because.", message_id="r1", adapter="openai", model="gpt-4o", opens=True),
    )
    chat.push(events.Restored(entries=entries, first=True, last=True))
    chat.nvim.wait_screen(r"▸ 2 snippets from 2 files · ~3\.1k tokens · 2\.1 s")
    chat.push(gathered())
    assert chat.text().count("2 snippets") == 1, "the log had it already"


def test_k_lists_the_pieces_and_enter_jumps_to_one(chat: ChatDriver, tmp_path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "stack.py").write_text("\n".join(f"line {n}" for n in range(1, 60)))
    ask(chat)
    chat.answer("show_gathered", {**REPORT, "can_choose": False, "root": str(tmp_path)})
    row = next(i for i, line in enumerate(chat.text().split("\n"), 1) if "2 snippets" in line)
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row)
    chat.nvim.feed("K")
    screen = chat.nvim.wait_screen(r"✓ \.82 +310 ast +src/stack.py:10-42 Stack")
    assert "x leave out" not in screen
    assert "Sent to the model:" in screen
    chat.nvim.feed("<CR>")
    chat.nvim.wait_lua("return vim.fs.basename(vim.api.nvim_buf_get_name(0)) == 'stack.py' and vim.fn.line('.') == 10")


def test_k_in_a_chat_of_another_neovim_opens_the_fold(chat: ChatDriver) -> None:
    """This host has no more than the buffer shows, and the chat is not requested again."""
    ask(chat)
    chat.opened(read_only=True, resumed=True)
    chat.nvim.wait_screen("▸ 2 snippets")
    row = next(i for i, line in enumerate(chat.text().split("\n"), 1) if "2 snippets" in line)
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row)
    chat.nvim.feed("K")
    chat.nvim.wait_screen(r"src/stack\.py:10-42 of 900")
    assert chat.sent("show_gathered") == []


@pytest.mark.parametrize(
    ("columns", "hint"),
    [(40, "open in another Neovim"), (80, "open in another Neovim · <CR> sends once it is closed there")],
)
def test_a_chat_of_another_neovim_is_marked_in_its_input(nvim_factory, columns, hint) -> None:
    """R-532: the hint fits the width and says why nothing is sent; typed text stays in the input."""
    chat = make_chat(nvim_factory, size=(columns, 24))
    chat.opened(read_only=True, resumed=True)
    chat.push(events.Restored(entries=(), first=True, last=True))
    screen = chat.nvim.wait_screen(hint)
    assert "<CR> send ·" not in screen
    chat.submit("my words")
    chat.opened(read_only=True, resumed=True)
    chat.push(events.Restored(entries=(), first=True, last=True))
    chat.push(events.RequestFailed(verb="submit", error="It is open elsewhere."))
    said = "This chat is open in another Neovim; close it there to continue here." if columns == 80 else hint
    screen = chat.nvim.wait_screen(said)
    assert "… (:CodeCompanion log)" not in screen
    assert chat.input() == "my words"


def test_gf_on_a_line_of_the_fold_jumps_there(chat: ChatDriver, tmp_path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "stack.py").write_text("\n".join(f"line {n}" for n in range(1, 60)))
    chat.nvim.lua("vim.cmd.cd(...)", str(tmp_path))
    ask(chat)
    chat.toggle_fold("2 snippets")
    row = next(i for i, line in enumerate(chat.text().split("\n"), 1) if "src/stack.py:10" in line)
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row)
    chat.nvim.feed("gf")
    chat.nvim.wait_lua("return vim.fs.basename(vim.api.nvim_buf_get_name(0)) == 'stack.py' and vim.fn.line('.') == 10")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_context_lists_the_code_with_reasons(nvim_factory, columns: int) -> None:
    chat = make_chat(nvim_factory, size=(columns, 30))
    chat.answer("preview_code", REPORT)
    chat.nvim.feed("i/context why is it empty?<Esc><CR>")
    screen = chat.nvim.wait_screen("2 snippets from 2 files")
    assert chat.sent("preview_code")[0]["question"] == "why is it empty?"
    assert chat.sent("submit") == [], "nothing is sent"
    assert "src/stack.py" in screen
    assert "big.py" in screen
    assert ("the budget is used up" in screen) == (columns >= 80)
    assert "big.py:1-900 · no room" in screen or columns >= 80
    assert all(len(line.rstrip()) <= columns for line in screen.split("\n"))


def test_pieces_are_excluded_and_pinned_with_a_key(chat: ChatDriver) -> None:
    chat.answer("preview_code", REPORT)
    chat.answer("choose_code", "Said by the host.")
    chat.nvim.feed("i/context why?<Esc><CR>")
    chat.nvim.wait_screen(r"✓ \.82 +310 ast")
    chat.nvim.feed("x")
    chat.nvim.wait_screen(r"✗ \.82 .* left out, starting with the next question")
    chat.nvim.feed("x")
    chat.nvim.wait_screen(r"✓ \.82")
    chat.nvim.feed("jp")
    chat.nvim.wait_screen(r"⚑ 1\.0 +90 common .* pinned, starting with the next question")
    chosen = [(one["path"], one["start"], one["choice"]) for one in chat.sent("choose_code")]
    assert chosen == [("src/stack.py", 10, "left_out"), ("src/stack.py", 10, ""), ("README.md", 0, "pinned")]
    assert [chat.sent("choose_code")[0][name] for name in ("end", "kind", "name")] == [42, "class", "Stack"]


LONG = "src/click/testing/shell_completion_support.py"


@pytest.mark.parametrize("columns", [60, 80])
def test_a_row_keeps_its_file_and_lines_and_shortens_the_reason(nvim_factory, columns: int) -> None:
    chat = make_chat(nvim_factory, size=(columns, 30))
    row = {**REPORT["rows"][0], "path": LONG, "what": f"{LONG}:100-120 of 900 complete_option"}
    dropped = {**row, "state": "out", "why": "the budget is used up"}
    above = {**row, "is_above": True, "why": "already sent: not sent again"}
    chat.answer("preview_code", {**REPORT, "rows": [row, dropped, above]})
    chat.answer("choose_code", "Said by the host.")
    chat.nvim.feed("i/context why?<Esc><CR>")
    place = r"\S*shell_completion_support\.py:100-120"
    screen = chat.nvim.wait_screen(rf"✓ \.82 .*{place}")
    assert re.search(rf"  \.82 .*{place}.* · no room", screen), screen
    assert re.search(rf"↑ \.82 .*{place}.* · already", screen), screen
    chat.nvim.feed("x")
    screen = chat.nvim.wait_screen(rf"✗ \.82 .*{place}.* · left out")
    assert all(len(line.rstrip()) <= columns for line in screen.split("\n"))


def test_a_moved_pin_is_unpinned_by_its_original_line(chat: ChatDriver) -> None:
    moved = {**REPORT["rows"][0], "state": "pinned", "source": "pinned", "chosen_at": 4}
    gone = {**REPORT["rows"][0], "path": "src/old.py", "what": "src/old.py:7 pop", "start": 7, "tokens": 0,
            "state": "pinned", "source": "pinned", "why": "gone"}  # fmt: skip
    chat.answer("preview_code", {**REPORT, "rows": [moved, gone]})
    chat.answer("choose_code", "Said by the host.")
    chat.nvim.feed("i/context why?<Esc><CR>")
    chat.nvim.wait_screen(r"src/old\.py:7 pop · gone")
    chat.nvim.feed("pjp")
    chat.nvim.wait_for(lambda: len(chat.sent("choose_code")) == 2, "both unpinned")
    chosen = [(one["path"], one["start"], one["choice"]) for one in chat.sent("choose_code")]
    assert chosen == [("src/stack.py", 4, ""), ("src/old.py", 7, "")]


def test_the_command_equals_the_slash_command(chat: ChatDriver) -> None:
    chat.answer("preview_code", REPORT)
    chat.nvim.feed(":CodeCompanionContext why is it empty?<CR>")
    chat.nvim.wait_screen("2 snippets from 2 files")
    assert chat.sent("preview_code")[0]["question"] == "why is it empty?"


def test_during_gathering_the_message_is_a_draft(chat: ChatDriver) -> None:
    """If Neovim is killed during gathering, the text is already stored (lesson 36)."""
    submit_id = chat.submit("Do not lose me")
    chat.push(events.Gathering(submit_id=submit_id), events.State(state="preparing", label="gathering code"))
    chat.nvim.wait_screen("gathering code")
    chat.nvim.wait_for(
        lambda: any("Do not lose me" in one["text"] for one in chat.sent("save_draft")), "the message kept as a draft"
    )
    chat.push(events.MessageSent(submit_id=submit_id, message_id="m1", text="Do not lose me", cycle=1), gathered())
    chat.nvim.wait_for(lambda: chat.sent("save_draft")[-1]["text"] == "", "no draft any more")


def test_a_stop_during_gathering_returns_the_message(chat: ChatDriver) -> None:
    submit_id = chat.submit("Do not lose me")
    chat.push(events.Gathering(submit_id=submit_id), events.State(state="preparing", label="gathering code"))
    chat.nvim.feed("q")
    chat.nvim.wait_for(lambda: chat.sent("cancel"), "the stop")
    chat.push(
        events.State(state="cancelling", label="stopping"),
        events.SubmitFailed(
            submit_id=submit_id, text="Do not lose me", error="Not sent. Your message is back in the input."
        ),
        events.TurnFinished(reason="stopped", unsent=True),
    )
    assert chat.input() == "Do not lose me"
    assert "· Not sent. Your message is back in the input." in chat.text()
    assert "Stopped." not in chat.text(), "nothing was asked, so there is nothing to ask again"


def test_the_codebase_and_files_are_completed(chat: ChatDriver, tmp_path) -> None:
    (tmp_path / "only this.lua").write_text("x")
    chat.nvim.lua("vim.cmd.cd(...)", str(tmp_path))
    chat.nvim.feed("ihow does #{co<C-x><C-o>")
    chat.nvim.wait_for(lambda: chat.input() == "how does #{codebase}", "the completed word")
    chat.nvim.feed(" and @on<C-x><C-o>")
    chat.nvim.wait_for(lambda: chat.input() == r"how does #{codebase} and @only\ this.lua", "the completed path")
    chat.nvim.feed("<CR>mail me@on<C-x><C-o>")
    chat.nvim.wait_for(lambda: chat.input().endswith("mail me@on"), "nothing completed after a word")


@pytest.mark.parametrize("module", ["blink", "cmp"])
def test_the_completion_sources_offer_them_too(chat: ChatDriver, module: str) -> None:
    lua = """local module = ...
       local source = require('codecompanion.completion.' .. module).new()
       local bufnr, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1]
       local result
       if module == 'blink' then
         source:get_completions({ bufnr = bufnr, line = 'see #{', cursor = { row, 6 } }, function(r) result = r end)
       else
         local context = { bufnr = bufnr, cursor_before_line = 'see #{', cursor = { row = row, col = 7 } }
         source:complete({ context = context }, function(r) result = r end)
       end
       local item = result.items[1]
       return { item.label, item.textEdit.range.start.character, source:get_trigger_characters() }"""
    assert chat.nvim.lua(lua, module) == ["#{buffer}", 4, ["/", "@", "#", "{", ":"]]


def in_project(chat: ChatDriver, folder: Path, *names: str) -> None:
    """Create a git project with these files and change to its folder."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    chat.nvim.lua("vim.cmd.cd(...)", str(folder))


def offered(chat: ChatDriver, line: str) -> list[str]:
    """Return the completion items after a line of the input, once the files are known."""
    folder = "require('codecompanion.project_files').folder()"
    chat.nvim.lua(f"require('codecompanion.project_files').look({folder})")
    chat.nvim.wait_lua(f"return require('codecompanion.project_files').is_known({folder})")
    return list(
        chat.nvim.lua(
            """local chat = require('codecompanion.chat').last_chat()
               local _, items = require('codecompanion.chat.ui.complete_input').items(chat, vim.fn.line('$') - 1, ...)
               return vim.tbl_map(function(item) return item.word end, items)""",
            line,
        )
    )


FILES = (
    "src/stack.py",
    "src/app/state.py",
    "src/app/my stage.py",
    "app/[id]/page.tsx",
    "build/stale.py",
    "lib/most.py",
)


def test_files_are_completed_by_part_of_their_name(chat: ChatDriver, tmp_path: Path) -> None:
    """A prefix ranks above a substring; ignored files are offered only by path."""
    in_project(chat, tmp_path / "project", *FILES)
    assert offered(chat, "see @st") == ["@src/stack.py", "@src/app/state.py", "@lib/most.py", r"@src/app/my\ stage.py"]
    words = offered(chat, "see @")
    assert [word.startswith("@{") for word in words] == sorted(word.startswith("@{") for word in words), "tools last"
    assert offered(chat, "see @app/st") == ["@src/app/state.py", r"@src/app/my\ stage.py"]
    assert offered(chat, "see @page") == ['@"app/[id]/page.tsx"']
    assert offered(chat, 'see @"my st') == ['@"src/app/my stage.py"']
    assert offered(chat, "see @stale") == []
    assert offered(chat, "see @build/st") == ["@build/stale.py"]
    assert offered(chat, "see #{file:sta") == ["#{file:src/stack.py}", "#{file:src/app/state.py}", *[
        "#{file:src/app/my stage.py}"
    ]]  # fmt: skip
    assert offered(chat, "/file stac") == ["src/stack.py"]


def test_ignored_and_binary_files_are_offered_once_their_path_is_typed(chat: ChatDriver, tmp_path: Path) -> None:
    """Without git, folders of dependencies and caches are skipped too."""
    binary = ("src/__pycache__/app.pyc", "build/out.o", "src/lib.so", "logo.png", "paper.pdf")
    for folder in (tmp_path / "project", tmp_path / "plain"):
        in_project(chat, folder, "src/app.py", "node_modules/left/index.js", "notes.md", *binary)
        (folder / ".gitignore").write_text("build/\nnode_modules/\n__pycache__/\n*.so\n")
        if folder.name == "plain":
            shutil.rmtree(folder / ".git")
        files = [word for word in offered(chat, "see @") if not word.startswith("@{")]
        assert set(files) - {"@build/"} == {"@.gitignore", "@notes.md", "@src/"}, "no text is below build/"
        assert offered(chat, "see @src/") == ["@src/app.py"]
        assert offered(chat, "see @src/__") == ["@src/__pycache__/"]
        assert offered(chat, "see @src/__pycache__/") == ["@src/__pycache__/app.pyc"]
        assert offered(chat, "see @src/l") == ["@src/lib.so"]
        assert [word for word in offered(chat, "see @no") if not word.startswith("@{")][-1] == "@node_modules/"
        assert offered(chat, "see @node_modules/l") == ["@node_modules/left/"]
        assert offered(chat, "/file src/") == ["src/app.py"]
        assert {"logo.png", "paper.pdf"} <= set(offered(chat, "/file "))
        assert "node_modules/" not in offered(chat, "/file ")


def test_each_entry_of_a_menu_has_a_description(chat: ChatDriver, tmp_path: Path) -> None:
    in_project(chat, tmp_path / "project", "src/app.py", "notes.md")
    chat.setup(
        {"interactions": {"chat": {"tools": {"mine": {"callback": "x"}, "groups": {"own": {"tools": ["recall"]}}}}}}
    )
    described = """
    local chat, line = require('codecompanion.chat').last_chat(), ...
    local _, items = require('codecompanion.chat.ui.complete_input').items(chat, vim.fn.line('$') - 1, line)
    return vim.tbl_map(function(item) return { item.word, item.description } end, items)
    """
    for line in ("/", "@", "@{", "#{", "#{file:"):
        assert offered(chat, line)
        for word, text in chat.nvim.lua(described, line):
            assert len(text) > 4, word
    groups = dict(chat.nvim.lua(described, "@{"))
    for group in BUILT_IN:
        assert groups[f"@{{{group.name}}}"] == f"group: {group.description.removesuffix('.')}"


def test_a_completed_file_is_found(chat: ChatDriver, tmp_path: Path) -> None:
    """The host reads the intended file, whatever characters its name contains."""
    names = [
        "a b.py",
        "x(1).py",
        "y_",
        "z@k.py",
        "w;.c",
        "né.py",
        "v[1]/a b.py",
        "ends.",
        "c,d.py",
        "e<f>.py",
        "Makefile",
    ]
    in_project(chat, tmp_path / "project", *names)
    for name in names:
        words = offered(chat, f"see @{name[0]}")
        found = {
            one for word in words for one in files_named(tmp_path / "project", mentions_in(f"see {word} now").files)
        }
        assert name in found, (name, words)


def test_the_open_file_comes_first(chat: ChatDriver, tmp_path: Path) -> None:
    in_project(chat, tmp_path / "project", "a/stem.py", "a/b/c/stories.py")
    chat.nvim.lua("vim.cmd.badd(...)", str(tmp_path / "project/a/b/c/stories.py"))
    assert offered(chat, "see @st") == ["@a/b/c/stories.py", "@a/stem.py"]


def test_a_name_can_be_completed_before_the_files_are_known(chat: ChatDriver, tmp_path: Path) -> None:
    """The menu opens once they are known, and nothing blocks."""
    in_project(chat, tmp_path / "project", *FILES)
    chat.nvim.feed("isee @stac<C-x><C-o>")
    chat.nvim.wait_for(lambda: chat.input() == "see @src/stack.py", "the completed name")


@pytest.mark.parametrize(
    ("columns", "title", "shown"),
    [
        (
            60,
            "#{selection} · nothing was selected in src/stack.py",
            "▸ #{sel… · nothing was selected in src/stack.py · ~30",
        ),
        (40, "#{selection} · nothing was selected in src/stack.py", "▸ nothing was selected in … · ~30 tokens"),
        (60, "#{buffer:stack.py} · the same as #{buffer}", "▸ #{buffer:stack.py} · the same as #{buffer} · ~30 tokens"),
        (40, "#{buffer:stack.py} · the same as #{buffer}", "▸ the same as #{buffer} · ~30 tokens"),
        (40, "#{buffer} · src/codecompanion/stack.py:1-20", "▸ #{buffer} · src/….py:1-20 · ~30 tokens"),
    ],
)
def test_the_reason_for_a_failed_mention_is_readable(nvim_factory, columns: int, title: str, shown: str) -> None:
    """The mention is in the message above, so it is shortened before the reason."""
    chat = make_chat(nvim_factory, size=(columns, 24))
    chat.accept("Why is it empty?")
    chat.push(events.EditorContextSent(message_id="c1", title=title, body="the whole sentence", tokens=30))
    chat.nvim.settle()
    line = next(line.rstrip() for line in chat.nvim.screen().split("\n") if "▸ " in line)
    assert line.startswith(shown), line
