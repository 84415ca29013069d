"""The list of stored chats: this project first, with all actions available."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from harness import Nvim


def stored(chat: ChatDriver, number: int, *, here: bool = True, hours: float = 1, **fields: Any) -> dict[str, Any]:
    """Return a row of `list_sessions`."""
    cwd = str(chat.nvim.lua("return vim.fn.getcwd()")) if here else "/somewhere/else"
    row = {"id": f"s{number}", "title": f"title {number}", "updated": time.time() - hours * 3600 - 5, "messages": 9}
    row["typed"] = fields.get("messages", 3)
    return row | {"cwd": cwd, "owned": False, "first_question": "", "last_question": ""} | fields


def told(row: dict[str, Any]) -> str:
    """Return the time of a row as the list shows it."""
    at, now = datetime.fromtimestamp(row["updated"]), datetime.now()
    days = (now.date() - at.date()).days
    if days < 2:
        return f"{'yesterday ' if days else ''}{at:%H:%M}"
    return f"{at.day} {at:%b} {at:%H:%M}" if at.year == now.year else f"{at.day} {at:%b %Y}"


def line(row: dict[str, Any], words: str, column: int) -> str:
    """Return a line of the list whose times take `column` cells."""
    return told(row).ljust(column) + "  " + words


def test_this_project_comes_first_with_time_messages_and_questions(chat: ChatDriver) -> None:
    """Chats of other projects are below a line, with their folder; <CR> opens the chat under the cursor."""
    rows = [
        stored(chat, 1, here=False, hours=0, title="elsewhere"),
        stored(chat, 2, hours=3, messages=1, last_question="and why is that so?"),
        stored(chat, 3, hours=50, last_question="title 3", owned=True),
    ]
    column = max(len(told(row)) for row in rows)
    chat.answer("list_sessions", rows)
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen("Resume a chat")
    assert chat.nvim.lines() == [
        line(rows[1], "title 2 · 1 turn", column),
        " " * column + "  and why is that so?",
        line(rows[2], "title 3 · 3 turns · open elsewhere", column),
        "── other projects ──",
        line(rows[0], "elsewhere · 3 turns · /somewhere/else", column),
    ]
    screen = chat.nvim.screen()
    assert "<CR> choose · r rename · d delete · / search · q close" in screen
    chat.nvim.feed("3G<CR>")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")
    assert chat.sent("open_chat")[1]["resume"] == "s3"


def test_a_message_between_the_first_and_the_last_is_found(chat: ChatDriver) -> None:
    """The row shows the newest first; `/` scrolls to one beyond the edge."""
    asked = ["title 1", "fix the failing test", "x" * 80, "which file did you change?"]
    chat.answer("list_sessions", [stored(chat, 1, questions=asked, last_question=asked[-1])])
    chat.nvim.command("CodeCompanionChat Resume")
    screen = chat.nvim.wait_screen("Resume a chat")
    assert "which file did you change? · xxx" in screen
    assert "fix the failing" not in screen
    chat.nvim.feed("/failing<CR>")
    chat.nvim.wait_screen("xxx · fix the failing test")
    chat.nvim.feed("<CR>")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")


def test_a_chat_is_renamed_and_deleted_from_the_list(chat: ChatDriver) -> None:
    """The list is redrawn with the current entries."""
    chat.answer("list_sessions", [stored(chat, 1, last_question="why is it so?"), stored(chat, 2)])
    chat.answer("rename_session", "Renamed.")
    chat.answer("delete_session", "Deleted.")
    chat.nvim.lua("vim.ui.input = function(opts, done) done(opts.default .. ' again') end")
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen("Resume a chat")
    chat.nvim.feed("3Gr")
    chat.nvim.wait_for(lambda: chat.sent("rename_session"), "rename_session")
    assert chat.sent("rename_session") == [{"chat": "s2", "title": "title 2 again"}]
    chat.nvim.wait_for(lambda: [one["cwd"] for one in chat.sent("list_sessions")].count("") == 2, "the list again")
    chat.nvim.wait_screen("Resume a chat")
    chat.nvim.feed("d")
    screen = chat.nvim.wait_screen(r"Delete “title 1” permanently\? 3 turns  \[y\]es  \[n\]o")
    assert "title 1 · 3 turns" in screen, "the question does not cover the row"
    assert "why is it so?" in screen
    assert chat.sent("delete_session") == []
    chat.nvim.feed("y")
    chat.nvim.wait_for(lambda: chat.sent("delete_session"), "delete_session")
    assert chat.sent("delete_session") == [{"chat": "s1"}]


def test_chats_with_one_title_and_question_show_their_last_reply(chat: ChatDriver) -> None:
    """The number of turns is left out if it is unknown."""
    rows = [
        stored(chat, 1, title="fix it", last_question="fix it", last_reply="The parser is fixed."),
        stored(chat, 2, title="fix it", last_question="fix it", last_reply="The test is fixed.", typed=-1),
    ]
    column = max(len(told(row)) for row in rows)
    chat.answer("list_sessions", rows)
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen("Resume a chat")
    assert chat.nvim.lines() == [
        line(rows[0], "fix it · 3 turns", column),
        " " * column + "  The parser is fixed.",
        line(rows[1], "fix it", column),
        " " * column + "  The test is fixed.",
    ]


def test_a_users_picker_gets_the_same_rows_and_a_manage_item(chat: ChatDriver) -> None:
    """Plugins such as telescope replace `vim.ui.select`; the manage item there allows renaming."""
    chat.answer("list_sessions", [stored(chat, 1), stored(chat, 2)])
    chat.nvim.lua(
        """_G.prompts = {}
           vim.ui.select = function(items, opts, done)
             table.insert(_G.prompts, opts.prompt .. ' ' .. opts.kind)
             _G.shown = vim.tbl_map(opts.format_item or tostring, items)
             done(#_G.prompts == 1 and items[#items] or #_G.prompts == 2 and items[2] or #_G.prompts == 3 and items[1]
               or nil)
           end
           vim.ui.input = function(_, done) done('new') end"""
    )
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_for(lambda: chat.sent("rename_session"), "rename_session")
    assert chat.sent("rename_session") == [{"chat": "s2", "title": "new"}]
    assert chat.nvim.lua("return _G.prompts") == [
        "Resume a chat codecompanion.session",
        "Rename or delete which chat? codecompanion.session",
        "title 2 codecompanion.session_action",
    ]


def test_titles_are_completed_and_resume_a_chat(chat: ChatDriver) -> None:
    """Titles come from the host's last answer, so completion never waits.

    If two chats share a title, their ids are completed.
    """
    chat.answer(
        "list_sessions",
        [stored(chat, 1, title="Fix the parser"), stored(chat, 2, title="Fix it"), stored(chat, 3, title="Fix it")],
    )
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen("Resume a chat")
    chat.nvim.feed("q")
    chat.nvim.feed(":CodeCompanionChat Resume Fix t<Tab><CR>")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")
    assert chat.sent("open_chat")[1]["resume"] == "s1"
    assert chat.nvim.lua("return vim.fn.getcompletion('CodeCompanionChat Resume ', 'cmdline')") == [
        "Fix the parser",
        "s2",
        "s3",
    ]
    chat.nvim.command("CodeCompanionChat Resume no such title")
    chat.nvim.wait_screen('No stored chat is called "no such title"')


def test_the_first_tab_starts_the_host_and_finds_the_titles(chat: ChatDriver) -> None:
    """The titles are requested when a command line is opened; if no host is running, the first <Tab> starts it."""
    chat.answer("list_sessions", [stored(chat, 1, title="slow one")])
    completed = "return vim.fn.getcompletion('CodeCompanionChat Resume slo', 'cmdline')"
    chat.nvim.feed(":")
    chat.nvim.wait_for(lambda: chat.sent("list_sessions"), "the question")
    chat.nvim.wait_for(lambda: chat.nvim.lua(completed) == ["slow one"], "the answer")
    chat.nvim.feed("CodeCompanionChat Resume slo<Tab>")
    chat.nvim.wait_screen(":CodeCompanionChat Resume slow one")
    chat.nvim.feed("<C-c>")
    chat.nvim.lua(
        """package.loaded['codecompanion.chat.lists.resume_list'] = nil
           require('codecompanion.host').status = function() return 'stopped' end
           require('codecompanion.install').can_start = function() return _G.installed end"""
    )
    asked = len(chat.sent("list_sessions"))
    assert chat.nvim.lua(completed) == []
    assert len(chat.sent("list_sessions")) == asked
    chat.nvim.lua("_G.installed = true")
    assert chat.nvim.lua(completed) == []
    chat.nvim.wait_for(lambda: chat.nvim.lua(completed) == ["slow one"], "the names a moment later")


@pytest.mark.parametrize("size", [(40, 20), (80, 24), (200, 60)])
def test_the_list_fits_every_terminal(nvim_factory: Callable[..., Nvim], size: tuple[int, int]) -> None:
    """The time and the beginning of the title are always visible."""
    chat = make_chat(nvim_factory, size=size)
    rows = [stored(chat, n, title=f"chat {n} " + "word " * 30) for n in range(60)]
    chat.answer("list_sessions", rows)
    chat.nvim.command("CodeCompanionChat Resume")
    screen = chat.nvim.wait_screen("more below|↓")
    assert line(rows[0], "chat 0 word", 0) in screen
    assert re.search(r"…( *│\n│ +| · )3 turns", screen)
    assert "q close" in screen


def test_an_empty_open_chat_is_not_listed_and_the_current_one_is_marked(chat: ChatDriver) -> None:
    """An empty chat has nothing to resume, unless it has a draft."""
    rows = [
        stored(chat, 1, id=chat.id, title="", messages=0),
        stored(chat, 2, title="", messages=0),
        stored(chat, 3),
    ]
    chat.answer("list_sessions", rows)
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen("Resume a chat")
    assert chat.nvim.lines() == [line(rows[0], "New chat · draft", 0), line(rows[2], "title 3 · 3 turns", 0)]
    chat.nvim.feed("q")
    chat.answer("list_sessions", [{**rows[0], "messages": 4, "typed": 2, "title": "mine"}, rows[2]])
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen(f"{told(rows[0])} +mine · 2 turns · this chat")
    chat.nvim.feed("q")
    chat.answer("list_sessions", [rows[0], rows[2]])
    chat.nvim.command("CodeCompanionChat Resume last")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")
    assert chat.sent("open_chat")[1]["resume"] == "s3"


def test_an_empty_history_is_one_sentence(chat: ChatDriver, tmp_path: Path) -> None:
    chat.answer("list_sessions", [])
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen("codecompanion: No stored chats yet")


def test_leaving_the_list_for_another_window_closes_it(chat: ChatDriver) -> None:
    """It used to stay on the screen, over the text, while keys went to the window below."""
    chat.answer("list_sessions", [stored(chat, 1)])
    chat.nvim.command("split")
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen("Resume a chat")
    chat.nvim.feed("<C-w>p")
    chat.nvim.wait_for(lambda: "Resume a chat" not in chat.nvim.screen(), "the end of the list")
    assert chat.nvim.lua("return vim.api.nvim_win_get_config(0).relative") == ""


def test_a_one_word_title_resumes_its_chat(chat: ChatDriver) -> None:
    """Completion offers it; it looks like an id but is not one."""
    chat.answer("list_sessions", [stored(chat, 1, title="hello")])
    chat.nvim.command("CodeCompanionChat Resume hello")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")
    assert chat.sent("open_chat")[1]["resume"] == "s1"


def test_an_id_opens_only_an_existing_chat(chat: ChatDriver) -> None:
    """The host looks up the chat by its id, because old chats are not in the list.

    A missing id used to open a dead chat.
    """
    chat.answer("list_sessions", [])
    chat.nvim.command("CodeCompanionChat Resume 0123456789abcdef")
    chat.nvim.wait_screen('No stored chat is called "0123456789abcdef"')
    assert len(chat.sent("open_chat")) == 1
    chat.answer("list_sessions", [stored(chat, 1, id="0123456789abcdef")])
    chat.nvim.command("CodeCompanionChat Resume 0123456789abcdef")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")
    assert chat.sent("list_sessions")[-1]["chat"] == "0123456789abcdef"
    assert chat.sent("open_chat")[1]["resume"] == "0123456789abcdef"


def test_missing_chats_are_named_above_the_list_and_restored_with_one_key(chat: ChatDriver) -> None:
    """The list never shows an emptied history without a notice."""
    missing = "2 chats with 31 messages missing from the history"
    chat.answer("list_sessions", [])
    chat.answer("list_missing", {"text": missing, "chats": []})
    chat.answer("bring_back", "2 chats restored from checkpoints.")
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen("Resume a chat")
    assert chat.nvim.lines() == [f"── {missing}", "── b restores them from checkpoints"]
    row = stored(chat, 1)
    chat.answer("list_sessions", [row])
    chat.answer("list_missing", {"text": "", "chats": []})
    chat.nvim.feed("b")
    chat.nvim.wait_for(lambda: chat.sent("bring_back"), "bring_back")
    chat.nvim.wait_screen("title 1")
    assert chat.nvim.lines() == [line(row, "title 1 · 3 turns", 0)]


def test_the_line_about_missing_chats_disappears_once_they_are_restored(chat: ChatDriver) -> None:
    """This also applies after another Neovim restored them, when the list is next requested."""
    chat.open()
    told = "1 chat with 4 messages missing from the history (“a” of today). :CodeCompanion resume restores them."
    chat.push(events.Notice(chat=chat.id, level=events.Severity.WARN, text=told, until_restored=True))
    chat.nvim.wait_screen("1 chat with 4 messages missing")
    chat.answer("list_sessions", [stored(chat, 1)])
    for text, is_said in (("1 chat with 4 messages missing from the history", True), ("", False)):
        chat.answer("list_missing", {"text": text, "chats": []})
        chat.nvim.command("CodeCompanionChat Resume")
        chat.nvim.wait_screen("Resume a chat")
        chat.nvim.feed("q")
        assert ("restores them." in chat.text()) == is_said


def test_resuming_the_newest_chat_of_an_emptied_history_opens_the_list(chat: ChatDriver) -> None:
    chat.answer("list_sessions", [])
    chat.answer("list_missing", {"text": "1 chat with 4 messages missing from the history", "chats": []})
    chat.nvim.command("CodeCompanion resume last")
    chat.nvim.wait_screen("b restores them from checkpoints")


def test_an_empty_chat_names_an_earlier_chat_of_the_folder(nvim_factory: Callable[..., Nvim]) -> None:
    """The hint appears after the chat is open and disappears with the first character.

    A chat open elsewhere is not named.
    """
    chat = make_chat(nvim_factory)
    chat.nvim.wait_for(lambda: chat.sent("list_sessions"), "the question")
    assert chat.sent("list_sessions")[0]["cwd"] == chat.nvim.lua("return vim.fn.getcwd()")
    assert "earlier:" not in chat.nvim.screen()
    rows = [
        stored(chat, 1, owned=True),
        stored(chat, 2, messages=0),
        stored(chat, 3, title="fix the\ntest"),
        stored(chat, 4),
    ]
    chat.answer("list_sessions", rows)
    chat.nvim.command("bwipeout")
    chat.nvim.command("CodeCompanionChat")
    chat.id = chat.nvim.lua("return require('codecompanion.chat').last_chat().id")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "the second chat")
    chat.opened()
    chat.nvim.wait_screen("earlier: fix the test · :CodeCompanionChat Resume")
    chat.nvim.request("nvim_ui_try_resize", 40, 24)
    chat.nvim.wait_screen("earlier: fix the test\n:CodeCompanionChat Resume\n")
    chat.nvim.request("nvim_ui_try_resize", 80, 24)
    assert chat.text().strip() == "## Me"
    chat.nvim.feed("Gix")
    chat.nvim.wait_for(lambda: "earlier:" not in chat.nvim.screen(), "the line to go")
    chat.accept("a question")
    assert "earlier:" not in chat.nvim.screen()


def test_a_new_chat_says_that_the_one_it_replaced_is_open_and_how_to_go_back(nvim_factory: Callable[..., Nvim]) -> None:
    """In the intro, or beside the question given with the command; nothing about an empty chat."""
    chat = make_chat(nvim_factory)
    chat.accept("the first question")
    chat.push(events.TitleChanged(title="the first question"))
    chat.nvim.command("CodeCompanionChat")
    chat.nvim.wait_screen(r"still open: the first question · \[b goes back")
    chat.nvim.feed("[b")
    chat.nvim.wait_screen("## Me\nthe first question")
    chat.nvim.feed("]b")
    assert "still open" not in chat.nvim.wait_screen("Welcome"), "the user has gone back once"
    chat.nvim.feed("[b")
    chat.nvim.wait_screen("## Me\nthe first question")
    chat.nvim.command("CodeCompanionChat what now?")
    screen = chat.nvim.wait_screen("what now?")
    assert "Welcome" not in screen
    chat.nvim.wait_screen(r"still open: the first question · \[b goes back$")
    chat.nvim.feed("[b")
    chat.nvim.wait_screen("## Me\nthe first question")
    assert "still open" not in chat.nvim.screen()
    chat.nvim.command("CodeCompanionChat New")
    chat.nvim.wait_screen(r"2 other chats open · \[b ]b switch")


def test_a_new_chat_does_not_mention_an_empty_one(chat: ChatDriver) -> None:
    chat.nvim.command("CodeCompanionChat New")
    chat.nvim.wait_lua("return #require('codecompanion.chat').list() == 2")
    chat.nvim.settle()
    assert "still open" not in chat.nvim.wait_screen("Welcome")


def test_drafts_are_marked(chat: ChatDriver) -> None:
    rows = [stored(chat, 1, draft=True), stored(chat, 2, messages=0, draft=True)]
    chat.answer("list_sessions", rows)
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen("Resume a chat")
    assert chat.nvim.lines() == [
        line(rows[0], "title 1 · 3 turns · unsent draft", 0),
        line(rows[1], "title 2 · draft", 0),
    ]


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2026-03-02 14:05", "14:05"),
        ("2026-03-02 00:00", "00:00"),
        ("2026-03-01 23:59", "yesterday 23:59"),
        ("2026-03-01 00:00", "yesterday 00:00"),
        ("2026-02-28 23:59", "28 Feb 23:59"),
        ("2026-01-03 09:07", "3 Jan 09:07"),
        ("2025-11-03 09:07", "3 Nov 2025"),
    ],
)
def test_a_time_is_written_as_people_write_it(chat: ChatDriver, at: str, shown: str) -> None:
    now, then = (datetime.fromisoformat(text).timestamp() for text in ("2026-03-02 15:00", at))
    assert chat.nvim.lua("return require('codecompanion.chat.lists.stored_lines').time(...)", then, now) == shown


@pytest.mark.parametrize(
    ("title", "said", "preview"),
    [
        ("why is it red?", "and why is it green?", "and why is it green?"),
        ("why is it red?", "why is it red?", ""),
        ("why is it red, or…", "why is it red, or is it not?", ""),
        ("hi", "hi again, why is it red?", "hi again, why is it red?"),
        ("why no check?", "src/a.py:6-7 ```python class A: ``` why no check?", ""),
        ("why is it red?", "```python class A: pass", "class A: pass"),
    ],
)
def test_a_preview_adds_to_the_title_and_has_no_fence(chat: ChatDriver, title: str, said: str, preview: str) -> None:
    row = stored(chat, 1, title=title, first_question=said, last_question=said)
    chat.answer("list_sessions", [row])
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_screen("Resume a chat")
    assert [text.strip() for text in chat.nvim.lines()[1:]] == ([preview] if preview else [])
