"""Slash commands and their completion."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from harness import Nvim


def send(chat: ChatDriver, text: str) -> None:
    """Put `text` into the input and press the send key."""
    chat.nvim.lua("require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').last_chat(), ...)", text)
    chat.nvim.feed("<CR>")
    chat.nvim.settle()


def choose(chat: ChatDriver, index: int) -> None:
    """Answer every vim.ui.select with the item at `index` (1-based)."""
    chat.nvim.lua(
        """local index = ...
           vim.ui.select = function(items, opts, done)
             _G.shown = vim.tbl_map(opts.format_item or tostring, items)
             done(items[index])
           end""",
        index,
    )


@pytest.mark.parametrize(
    "text",
    [
        "/usr/bin/env is missing",
        "/usr/bin",
        "/etc/hosts says otherwise",
        "/tmp is full",
        "/* a comment */",
        " /clear the table",
        "first\n/compact",
        "x /help",
    ],
)
def test_text_that_is_not_a_command_is_sent(chat: ChatDriver, text: str) -> None:
    """A path can be sent, and so can a sentence that begins like a command."""
    send(chat, text)
    assert [request["text"] for request in chat.sent("submit")] == [text]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/comapct", "No command /comapct; did you mean /compact? Nothing was sent."),
        ("/zzzzzz now", "No command /zzzzzz; /help lists them. Nothing was sent."),
        ("/clear the table", "/clear takes no argument. Nothing was sent."),
        ("/file a\nand more", "/file takes one line. Nothing was sent."),
        ("/file missing.lua", "Nothing was attached: no readable file missing.lua."),
        ("/buffer none", "Nothing to attach: no open buffer has a file."),
        ("/image missing.lua", "Nothing was attached: no readable file missing.lua."),
        ("/image plain.txt", "Nothing was attached: plain.txt is not an image (png, jpg, jpeg, gif, webp)."),
        ("/resume zzz", 'No stored chat is called "zzz"; /resume lists them.'),
        (
            "/resume 0123456789abcdef",
            'No stored chat is called "0123456789abcdef"; /resume lists them.',
        ),
        ("/unpin x", 'Nothing was unpinned: "x" is not a number; /pins lists them.'),
        ("/trace x", '"x" is not a turn number; /trace alone shows the newest turn.'),
    ],
)
def test_a_refused_command_stays_in_the_input(chat: ChatDriver, text: str, said: str) -> None:
    """A mistyped command is never sent, and typed text is never lost."""
    chat.answer("list_sessions", [])
    (chat.nvim.root / "work" / "plain.txt").write_text("no image")
    send(chat, text)
    chat.nvim.wait_for(lambda: f"! {said}" in chat.text(), said)
    assert chat.sent("submit") == []
    assert chat.sent("attach") == []
    chat.nvim.wait_for(lambda: chat.input() == text, "what was typed")
    assert len(chat.sent("open_chat")) == 1
    send(chat, text)
    assert chat.text().count(f"! {said}") == 1


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("/unpin 9", "unpin"),
        ("/pin use tabs", "pin"),
        ("/rename a long name", "rename_session"),
        ("/title a long name", "rename_session"),
        ("/fork another way", "fork_chat"),
        ("/trace 99", "show_trace"),
        ("/rules nope", "add_rules"),
        ("/restore nope", "restore_chat"),
        ("/continue", "go_on"),
    ],
)
def test_a_command_refused_by_the_host_stays_in_the_input(chat: ChatDriver, text: str, verb: str) -> None:
    """The host's error is shown, and the command can be corrected."""
    chat.nvim.lua(
        """local host, verb = require('codecompanion.host'), ...
           local request = host.request
           host.request = function(asked, payload, callback)
             request(asked, payload, callback)
             if asked == verb then
               vim.schedule(function() callback('There is none of it.') end)
             end
           end""",
        verb,
    )
    send(chat, text)
    chat.nvim.wait_for(lambda: chat.input() == text, "what was typed")
    assert "! There is none of it." in chat.text()


def test_a_command_the_host_refuses_late_returns(chat: ChatDriver) -> None:
    """The answer arrives later; text typed in the meantime is not overwritten."""
    chat.nvim.lua(
        """local host = require('codecompanion.host')
           local request = host.request
           host.request = function(verb, payload, callback)
             request(verb, payload, nil)
             if verb == 'set_policy' then _G.refuse = callback end
           end"""
    )
    send(chat, "/policy nonsense")
    assert chat.input() == ""
    chat.nvim.lua("_G.refuse('there is no policy nonsense')")
    chat.nvim.wait_for(lambda: chat.input() == "/policy nonsense", "the command")
    assert "! there is no policy nonsense" in chat.text()


def test_compact_shows_a_forecast_and_takes_one_key(chat: ChatDriver) -> None:
    """R-533: the figures come from the host, instructions may span several lines, and `n` compacts nothing."""
    chat.answer("forecast_compaction", {"before": 8200, "after": 2040, "pins": 2, "rules": 1, "why": ""})
    send(chat, "/compact")
    chat.nvim.wait_screen(
        r"Compact now\? 8\.2k → about 2\.0k · keeps 2 pins, 1 rule  \[y\]es  yes, then \[c\]ontinue  \[n\]o"
    )
    chat.nvim.feed("n")
    chat.nvim.wait_for(lambda: "Compact now" not in chat.nvim.screen(), "the end of the question")
    assert chat.sent("compact") == []
    send(chat, "/compact keep the API\nand the names")
    chat.nvim.feed("y")
    chat.nvim.wait_for(lambda: chat.sent("compact"), "compact")
    assert chat.sent("compact") == [{"chat": chat.id, "instructions": "keep the API\nand the names", "go_on": False}]
    assert chat.sent("submit") == []
    assert chat.input() == ""


@pytest.mark.parametrize("key", ["n", "<Esc>"])
def test_declining_a_compaction_keeps_the_instructions(chat: ChatDriver, key: str) -> None:
    """R-533: the instructions are the user's work, so they stay in the input; nothing is sent."""
    send(chat, "/compact keep the API\nand the names")
    chat.nvim.wait_screen(r"Compact now\?")
    assert chat.input() == ""
    chat.nvim.feed(key)
    chat.nvim.wait_for(lambda: chat.input() == "/compact keep the API\nand the names", "the words")
    assert "! Not compacted; your text is back in the input." in chat.text()
    assert chat.sent("compact") == []


def test_compact_is_asked_and_answered_from_insert_mode(chat: ChatDriver) -> None:
    """One key answers in insert mode too; other keys do nothing, and insert mode resumes afterwards."""
    chat.nvim.feed("i/compact<C-s>")
    chat.nvim.wait_screen(r"Compact now\?")
    chat.nvim.feed("xZc")
    chat.nvim.wait_for(lambda: chat.sent("compact"), "compact")
    assert chat.sent("compact")[0]["go_on"] is True
    chat.nvim.feed("more")
    chat.nvim.wait_for(lambda: chat.input() == "more", "what was typed afterwards")


NOTHING = {"before": 10, "after": 0, "pins": 0, "rules": 0, "why": "nothing is old"}


@pytest.mark.parametrize("state", ["idle", "streaming"])
def test_compact_with_nothing_to_do_asks_nothing(chat: ChatDriver, state: str) -> None:
    """R-533, R-545: when idle, the host reports it in one sentence and ends a pause.

    During a turn it queues the request, because there may be work by then.
    """
    chat.accept("go")
    chat.push(events.State(state=state, label=""))
    chat.answer("forecast_compaction", NOTHING)
    send(chat, "/compact")
    chat.nvim.wait_for(lambda: chat.sent("compact"), "compact")
    assert chat.sent("compact") == [{"chat": chat.id, "instructions": "", "go_on": False}]
    assert "[y]es" not in chat.nvim.screen()
    assert chat.input() == ""


def test_compact_asks_nothing_if_a_summary_would_not_be_smaller(chat: ChatDriver) -> None:
    """R-533: nothing is sent, and the answer is one sentence."""
    chat.accept("go")
    chat.answer("forecast_compaction", {"before": 2600, "after": 2600, "pins": 0, "rules": 0, "why": "too short"})
    send(chat, "/compact")
    chat.nvim.wait_screen(r"Nothing to compact: too short\.")
    assert chat.sent("compact") == []
    assert "[y]es" not in chat.nvim.screen()


def test_instructions_for_a_compaction_with_nothing_to_do_stay(chat: ChatDriver) -> None:
    """The instructions are the user's work and stay in the input."""
    chat.answer("forecast_compaction", NOTHING)
    send(chat, "/compact keep the API")
    chat.nvim.wait_for(lambda: chat.input() == "/compact keep the API", "the words")
    assert "! Nothing to compact: nothing is old. Your text is back in the input." in chat.text()
    assert chat.sent("compact") == []


def test_the_question_fits_forty_columns(nvim_factory: Callable[..., Nvim]) -> None:
    """The prompt takes more lines instead of cutting off its answers."""
    chat = make_chat(nvim_factory, size=(40, 24))
    chat.answer("forecast_compaction", {"before": 8200, "after": 2040, "pins": 2, "rules": 1, "why": ""})
    send(chat, "/compact")
    screen = chat.nvim.wait_screen("about 2.0k")
    for answer in ("[y]es", "yes, then [c]ontinue", "[n]o"):
        assert answer in screen


def test_the_compact_command_with_a_bang_does_not_ask(chat: ChatDriver) -> None:
    """`:CodeCompanionCompact!` goes straight to the host."""
    chat.nvim.lua("require('codecompanion.chat').compact('short', { ask = false })")
    assert chat.sent("compact") == [{"chat": chat.id, "instructions": "short", "go_on": False}]


def test_clear_asks_the_host_and_help_shows_keys_and_commands(chat: ChatDriver) -> None:
    """Help does not need the host."""
    send(chat, "/clear")
    assert len(chat.sent("clear")) == 1
    chat.nvim.request("nvim_ui_try_resize", 100, 60)
    send(chat, "/help")
    screen = chat.nvim.wait_screen("/compact")
    assert "Send the message" in screen
    chat.nvim.feed("q")


def test_file_takes_a_path_or_lets_the_user_choose(chat: ChatDriver) -> None:
    """A path that cannot be read is one sentence, not an attachment."""
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    (work / "a.lua").write_text("return 1\n")
    (work / "b.png").write_bytes(b"png")
    send(chat, "/file a.lua")
    assert chat.sent("attach") == [{"chat": chat.id, "kind": "file", "path": str(work / "a.lua")}]
    choose(chat, 1)
    send(chat, "/image")
    chat.nvim.wait_for(lambda: len(chat.sent("attach")) == 2, "the image")
    assert chat.sent("attach")[1] == {"chat": chat.id, "kind": "image", "path": str(work / "b.png")}


def test_file_takes_several_paths_patterns_and_spaces(chat: ChatDriver) -> None:
    """In `/file a b c`, nothing is attached if one of the files is missing."""
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    for name in ("a.lua", "b.lua", "with space.txt", "c.txt"):
        (work / name).write_text("x\n")
    send(chat, "/file a.lua missing.lua")
    assert chat.sent("attach") == []
    chat.nvim.feed("<Esc>dd")
    send(chat, r"/file *.lua c.txt with\ space.txt")
    names = [Path(request["path"]).name for request in chat.sent("attach")]
    assert names == ["a.lua", "b.lua", "c.txt", "with space.txt"]
    send(chat, "/file with space.txt")
    assert Path(chat.sent("attach")[-1]["path"]).name == "with space.txt"
    chat.nvim.feed("i/file a.lua wit<C-x><C-o>")
    chat.nvim.wait_for(lambda: chat.input() == r"/file a.lua with\ space.txt", "the completed second path")


def test_buffer_attaches_unsaved_text(chat: ChatDriver) -> None:
    """The buffer's text is attached, not the file's."""
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    (work / "a.lua").write_text("saved\n")
    chat.nvim.lua("local b = vim.fn.bufadd('a.lua'); vim.fn.bufload(b); vim.bo[b].buflisted = true")
    chat.nvim.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.lua'), 0, -1, false, { 'unsaved' })")
    send(chat, "/buffer a.lua")
    assert chat.sent("attach") == [
        {"chat": chat.id, "kind": "buffer", "path": str(work / "a.lua"), "text": "unsaved\n"}
    ]
    send(chat, "/buffer nothing")
    assert "! Nothing was attached: no open buffer is called nothing." in chat.text()
    assert chat.input() == "/buffer nothing"


def test_buffer_accepts_the_completed_names(chat: ChatDriver) -> None:
    """A buffer can be named by the end or any part of its path.

    An ambiguous name attaches nothing and lists the matches.
    """
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    for name in ("src/fact.py", "src/deep/list.py", "test/list.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x\n")
        chat.nvim.lua("local b = vim.fn.bufadd(...); vim.fn.bufload(b); vim.bo[b].buflisted = true", name)
    for written in ("fact.py", "src/fact.py", "fact"):
        send(chat, f"/buffer {written}")
        assert Path(chat.sent("attach")[-1]["path"]) == work / "src/fact.py"
    send(chat, "/buffer fact.py deep/list.py")
    assert [Path(one["path"]).name for one in chat.sent("attach")] == ["fact.py"] * 4 + ["list.py"]
    send(chat, "/buffer list.py")
    said = "Nothing was attached: list.py could be src/deep/list.py, test/list.py."
    assert said in " ".join(chat.text().split())
    assert chat.input() == "/buffer list.py"


def test_rules_are_chosen_from_the_hosts_list(chat: ChatDriver) -> None:
    """R-549: the chosen group is added."""
    chat.answer("list_rules", [{"name": "default", "description": "Common files", "files": ["AGENTS.md"]}])
    choose(chat, 1)
    send(chat, "/rules")
    chat.nvim.wait_for(lambda: chat.sent("add_rules"), "add_rules")
    assert chat.sent("add_rules") == [{"chat": chat.id, "group": "default"}]
    assert chat.nvim.lua("return _G.shown") == ["default · Common files · 1 file"]


def test_a_model_is_chosen_from_the_list(chat: ChatDriver) -> None:
    """`ga` lists all adapters with their models; the header shows the new model."""
    models: list[dict[str, Any]] = [
        {"adapter": "openai", "models": [{"name": "gpt-4o", "window": 128000}]},
        {"adapter": "offline", "models": [{"name": "offline", "window": 1000000}]},
    ]
    chat.answer("list_models", models)
    choose(chat, 2)
    chat.nvim.feed("ga")
    chat.nvim.wait_for(lambda: chat.sent("set_model"), "set_model")
    assert chat.sent("set_model")[0]["adapter"] == "offline"
    assert chat.sent("set_model")[0]["model"] == "offline"
    assert chat.nvim.lua("return _G.shown") == ["openai · gpt-4o · 128k · current", "offline · 1M"]
    header = "return require('codecompanion.chat.state.chat_options').header('llm', ...)"
    assert chat.nvim.lua(header, "offline", "offline") == "CodeCompanion (offline)", "one name once"
    assert chat.nvim.lua(header, "openai", "gpt-4o") == "CodeCompanion (openai · gpt-4o)"
    chat.push(events.ModelChanged(adapter="offline", model="offline", window=1000000))
    chat.nvim.wait_for(lambda: chat.nvim.screen().split("\n")[-2].startswith(" offline "), "the status line")


def test_yolo_mode_is_visible(chat: ChatDriver) -> None:
    """A mode in which approvals are disabled must not go unnoticed."""
    chat.nvim.feed("gty")
    chat.nvim.wait_screen(r"## Me +YOLO")
    chat.nvim.feed("gty")
    chat.nvim.wait_for(lambda: not re.search(r"## Me +YOLO", chat.nvim.screen()), "YOLO to go")
    assert [request["on"] for request in chat.sent("set_yolo")] == [True, False]


def test_completion_offers_commands_and_paths(chat: ChatDriver) -> None:
    """Native completion works only at the start of the input."""
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    (work / "only_this.lua").write_text("")
    chat.nvim.feed("i/comp<C-x><C-o>")
    chat.nvim.wait_for(lambda: chat.input() == "/compact", "the completed command")
    chat.nvim.feed("<Esc>ddi/<C-x><C-o>")
    screen = chat.nvim.wait_screen(r"/rules \[group\] +Add a group of rules")
    assert "/compact [instructions]" in screen
    chat.nvim.feed("<C-e><Esc>cc/file on<C-x><C-o>")
    chat.nvim.wait_for(lambda: chat.input() == "/file only_this.lua", "the completed path")
    chat.nvim.feed("<Esc>ccfirst<CR>/co<C-x><C-o>")
    chat.nvim.settle()
    assert chat.input() == "first\n/co"


MENU = """
local info = vim.fn.complete_info({ 'pum_visible', 'selected', 'items' })
return { info.pum_visible == 1 and info.selected == -1, vim.tbl_map(function(i) return i.word end, info.items) }
"""


def type_one_by_one(chat: ChatDriver, keys: str) -> list[str]:
    """Type slowly, as a user does; return the entries of the open menu, none of which is selected."""
    for key in keys:
        chat.nvim.feed("<lt>" if key == "<" else key)
        chat.nvim.settle()
    is_open, words = chat.nvim.lua(MENU)
    return list(words) if is_open else []


def test_typing_a_trigger_opens_neovims_menu(chat: ChatDriver) -> None:
    """Nothing is selected or inserted, typing narrows it, and the user's 'completeopt' is unchanged."""
    chat.nvim.lua("_G.own = { vim.go.completeopt, vim.bo.completeopt }")
    chat.nvim.feed("i")
    assert "/compact" in type_one_by_one(chat, "/")
    assert type_one_by_one(chat, "co") == ["/continue", "/compact", "/context", "/cost"]
    assert "/trace" in type_one_by_one(chat, "\x15/tr")
    assert type_one_by_one(chat, "q") == []
    chat.nvim.feed("<BS>")
    assert type_one_by_one(chat, "") == ["/trace"]
    for typed, entry in (("#{", "#{buffer}"), ("see @", "@{files}"), ("see @{", "@{files}"), ("#{f", "#{file:")):
        assert entry in type_one_by_one(chat, "\x15" + typed)
        assert chat.input() == typed
    assert type_one_by_one(chat, "x y") == []
    for typed in ("a/", "1/2", "and/or", "/usr/", "/usr/bin", "me@", "# Title", "#"):
        assert type_one_by_one(chat, "\x15" + typed) == [], typed
    chat.nvim.feed("<C-u><CR>")
    assert "/compact" in type_one_by_one(chat, "/"), "an empty line above does not matter: the command is sent as one"
    for before in (" ", "text<CR>", "text<CR><CR>", " <CR><C-u>", "```<CR>"):
        chat.nvim.lua("require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').last_chat(), '')")
        chat.nvim.feed(before)
        assert type_one_by_one(chat, "/") == [], before
    chat.nvim.feed("<Esc>")
    chat.nvim.wait_lua("return vim.deep_equal(_G.own, { vim.go.completeopt, vim.bo.completeopt })")


@pytest.mark.parametrize("is_slow", [True, False])
def test_enter_in_insert_mode_runs_a_command(chat: ChatDriver, is_slow: bool) -> None:
    """A one-line command cannot continue, so the line break runs it; whatever may continue gets its new line."""

    def type_line(text: str) -> None:
        chat.nvim.feed("<Esc>cc")
        if is_slow:
            type_one_by_one(chat, text)
        chat.nvim.feed("<CR>" if is_slow else f"{text}<CR>")

    for name in ("x", "y"):
        type_line(f"/trace {name}")
        chat.nvim.wait_screen(f'"{name}" is not a turn number')
        assert chat.input() == f"/trace {name}", "a refused command stays, without the new line"
    for text in ("/compact keep the names", " /trace x", "/usr/bin", "/comapct", "text"):
        type_line(text)
        chat.nvim.wait_for(lambda text=text: chat.input().rstrip(" ") == f"{text}\n", "the next line")
        chat.nvim.feed("<Esc>")
        chat.nvim.lua("require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').last_chat(), '')")


def test_a_line_break_that_is_not_typed_runs_nothing(chat: ChatDriver) -> None:
    """Neither a paste, nor `o`, nor a register runs a command."""
    chat.nvim.feed("i")
    chat.nvim.settle()
    chat.nvim.request("nvim_paste", "/trace x\n", False, -1)
    chat.nvim.settle()
    assert chat.input() == "/trace x\n"
    chat.nvim.feed("<C-o>:lua vim.fn.setreg('a', '/trace x\\n')<CR>")
    for keys in ("<Esc>cc<C-r>a", "<Esc>cc/trace x<Esc>o"):
        chat.nvim.lua("require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').last_chat(), '')")
        chat.nvim.feed(keys)
        chat.nvim.settle()
        chat.nvim.wait_for(lambda: chat.input() == "/trace x\n", keys)
    assert "is not a turn number" not in chat.text()


def test_enter_accepts_the_selected_entry_or_acts_as_usual(chat_everywhere: ChatDriver) -> None:
    """Without a selection the menu closes and the key is not lost, even if it is typed fast."""
    chat = chat_everywhere
    chat.nvim.feed("i")
    for slowly in (True, False):
        for typed, expected in (("/", "/\n"), ("/co", "/co\n"), ("see #{b", "see #{b\n"), ("@", "@\n")):
            assert type_one_by_one(chat, "\x15" + typed) if slowly else chat.nvim.feed("<C-u>" + typed) is None
            chat.nvim.feed("<CR>")
            chat.nvim.wait_for(lambda expected=expected: chat.input() == expected, "the next line")
            assert type_one_by_one(chat, "") == []
            chat.nvim.lua("require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').last_chat(), '')")
    assert type_one_by_one(chat, "/co")
    chat.nvim.feed("<C-n><CR>")
    chat.nvim.wait_for(lambda: chat.input() == "/continue", "the command")
    assert type_one_by_one(chat, "") == [], "nothing is left to complete"
    chat.nvim.wait_lua("return vim.fn.maparg('<CR>', 'i') == ''")


def test_enter_in_the_menu_does_what_the_user_has_mapped(chat: ChatDriver) -> None:
    keys = "vim.keymap.set('i', '<CR>', function() _G.pressed = vim.fn.pumvisible() end, { buffer = true })"
    chat.nvim.lua(keys)
    chat.nvim.feed("i")
    assert type_one_by_one(chat, "/co")
    chat.nvim.feed("<CR>")
    chat.nvim.wait_lua("return _G.pressed == 0")
    assert chat.input() == "/co"
    assert type_one_by_one(chat, "s") == ["/cost"]
    chat.nvim.feed("<C-n><CR>")
    chat.nvim.wait_for(lambda: chat.input() == "/cost", "the command")
    chat.nvim.wait_lua("_G.pressed = nil return vim.fn.maparg('<CR>', 'i', false, true).desc == nil")
    chat.nvim.feed("<CR>")
    chat.nvim.wait_lua("return _G.pressed == 0")


def test_autocomplete_of_neovim_and_the_menu_do_not_interfere(chat_everywhere: ChatDriver) -> None:
    """Since 0.12, with and without 'omnifunc' in 'complete'; it requests completions of text that is still there."""
    chat = chat_everywhere
    chat.nvim.feed("i/co")
    chat.nvim.settle()
    omnifunc = "local f = require('codecompanion.chat.ui.complete_input').omnifunc"
    words = chat.nvim.lua(f"{omnifunc} f(1, '') return vim.tbl_map(function(i) return i.word end, f(0, '/co').words)")
    assert words == ["/continue", "/compact", "/context", "/cost"]
    if not chat.nvim.lua("return pcall(vim.api.nvim_get_option_value, 'autocomplete', {})"):
        return
    for sources in ("o,.", "."):
        chat.nvim.lua("vim.o.autocomplete = true vim.bo.complete = ...", sources)
        for typed in ("/", "see #{", "see @", "@{"):
            type_one_by_one(chat, "\x15" + typed)
            chat.nvim.wait_lua("return vim.fn.pumvisible() == 1")
            assert chat.input() == typed
        assert type_one_by_one(chat, "\x15/cos")[-1] == "/cost"
        chat.nvim.feed("<C-n><C-y>")
        chat.nvim.wait_for(lambda: chat.input() == "/cost", "the command")


def test_the_menu_shows_the_files_once_they_are_known(chat: ChatDriver) -> None:
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    (work / "only_this.lua").write_text("")
    chat.nvim.feed("i")
    type_one_by_one(chat, "#{file:")
    chat.nvim.wait_for(lambda: "#{file:only_this.lua}" in type_one_by_one(chat, ""), "the file")
    assert type_one_by_one(chat, "this.") == ["#{file:only_this.lua}"]
    assert chat.input() == "#{file:this."


def test_repeating_and_macros_open_no_menu(chat: ChatDriver) -> None:
    chat.nvim.lua("vim.fn.setreg('q', 'cc/')")
    chat.nvim.feed("@q")
    assert type_one_by_one(chat, "") == []
    chat.nvim.feed("<Esc>cc")
    assert type_one_by_one(chat, "/cos") == ["/cost"]
    chat.nvim.feed("<C-n><C-y> now<Esc>.")
    chat.nvim.settle()
    assert (chat.input(), chat.nvim.lua("return vim.fn.mode()")) == ("/cost now", "n")


@pytest.mark.parametrize(
    ("given", "provider", "is_open"),
    [
        ("package.preload['blink.cmp.config'] = function() return { enabled = function() return true end } end", "", 0),
        (
            "package.preload['blink.cmp.config'] = function() return { enabled = function() return false end } end",
            "",
            1,
        ),
        ("package.loaded.cmp = { get_config = function() return { enabled = true } end }", "", 0),
        ("package.loaded.cmp = { get_config = function() return { enabled = true } end }", "default", 1),
        ("vim.g.coc_enabled = 1", "", 0),
        ("vim.bo.omnifunc = 'syntaxcomplete#Complete'", "", 0),
        ("", "blink", 0),
    ],
)
def test_the_menu_is_left_to_a_completion_plugin(chat: ChatDriver, given: str, provider: str, is_open: int) -> None:
    if "blink" in given:
        chat.nvim.lua("package.loaded['blink.cmp'] = {}")
    if provider:
        chat.setup({"interactions": {"chat": {"opts": {"completion_provider": provider}}}})
    chat.nvim.lua(given)
    chat.nvim.feed("i")
    assert bool(type_one_by_one(chat, "/")) == bool(is_open)


def test_keys_can_be_changed_and_disabled(chat: ChatDriver) -> None:
    """Every mapping has a description and can be disabled."""
    chat.setup(
        {
            "display": {"chat": {"window": {"layout": "buffer"}}},
            "interactions": {"chat": {"keymaps": {"close": False, "send": {"modes": {"n": "<C-y>"}}}}},
        }
    )
    chat.open()
    normal, insert = (
        {item["lhs"]: item.get("desc", "") for item in chat.nvim.request("nvim_buf_get_keymap", 0, mode)}
        for mode in "ni"
    )
    assert "<C-C>" not in normal | insert
    assert "<C-Y>" in normal
    assert "<CR>" not in normal
    assert all((normal | insert).values()), (normal, insert)
    chat.nvim.wait_screen(r"<C-y> send · g\? help")


def test_header_motions_use_marks_instead_of_text(chat: ChatDriver) -> None:
    """`]]` and `[[` skip headings inside messages."""
    chat.accept("## Me\nfake")
    chat.reply("## CodeCompanion\nfake")
    chat.nvim.feed("gg")
    rows = []
    for _ in range(3):
        chat.nvim.feed("]]")
        chat.nvim.settle()
        rows.append(chat.nvim.lua("return vim.fn.line('.')"))
    assert rows == [5, 9, 9]
    chat.nvim.feed("G[[[[[[")
    chat.nvim.settle()
    assert chat.nvim.lua("return vim.fn.line('.')") == 1


@pytest.mark.parametrize("module", ["blink", "cmp"])
def test_completion_plugin_sources_offer_the_same_items(chat: ChatDriver, module: str) -> None:
    """The sources are called through their documented interfaces."""
    chat.nvim.feed("i/ru<Esc>")
    chat.nvim.settle()
    labels = chat.nvim.lua(
        """local module = ...
           local source = require('codecompanion.completion.' .. module).new()
           local row, result = vim.api.nvim_win_get_cursor(0)[1], nil
           local bufnr = vim.api.nvim_get_current_buf()
           if module == 'blink' then
             source:get_completions({ bufnr = bufnr, line = '/ru', cursor = { row, 3 } }, function(r) result = r end)
           else
             local context = { bufnr = bufnr, cursor = { row = row, col = 4 }, cursor_before_line = '/ru' }
             source:complete({ context = context }, function(r) result = r end)
           end
           return vim.tbl_map(function(item) return item.textEdit.newText end, result.items)""",
        module,
    )
    assert labels == ["/rules"]


@pytest.mark.parametrize("command", ["/continue", "/compact", "/clear"])
def test_a_chat_open_in_another_neovim_accepts_no_command(chat: ChatDriver, command: str) -> None:
    """The chat is requested again; while the other Neovim has it open, that is reported once."""
    choose(chat, 1)
    chat.opened(read_only=True, resumed=True)
    chat.push(events.Restored(entries=(), first=True, last=True))
    send(chat, command)
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "the chat to be asked for again")
    assert chat.sent("open_chat")[1]["resume"] == chat.id
    chat.opened(read_only=True, resumed=True)
    chat.push(events.Restored(entries=(), first=True, last=True))
    assert chat.text().count("another Neovim") == 1


@pytest.mark.parametrize(
    ("text", "verb", "payload"),
    [
        ("/undo", "undo_change", {"change_id": ""}),
        ("/redo", "redo_change", {"change_id": ""}),
        ("/recall the plan", "recall", {"words": "the plan"}),
        ("/restore", "list_checkpoints", {"of": "<id>"}),
        ("/restore c1", "restore_chat", {"checkpoint": "c1"}),
        ("/resume s1", "open_chat", {"resume": "s1"}),
        ("/new", "open_chat", {"resume": ""}),
    ],
)
def test_every_capability_has_a_slash_command(chat: ChatDriver, text: str, verb: str, payload: dict[str, Any]) -> None:
    """Every function of commands and keys is also available as typed text."""
    stored = {"id": "s1", "title": "one", "updated": 1700000000, "messages": 7, "cwd": "/", "owned": False}
    chat.answer("list_sessions", [stored])
    send(chat, text)
    chat.nvim.wait_for(lambda: len(chat.sent(verb)) == (2 if verb == "open_chat" else 1), verb)
    sent = chat.sent(verb)[-1]
    for field, value in payload.items():
        assert (sent.get(field) or "") == (chat.id if value == "<id>" else value)
    assert chat.sent("submit") == []


def test_new_uses_this_window_and_the_old_chat_stays(chat: ChatDriver) -> None:
    """No second split opens, and the previous-chat key leads back."""
    chat.accept("the old one")
    send(chat, "/new")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")
    assert chat.nvim.lua("return #vim.api.nvim_list_wins()") == 1
    assert "the old one" not in chat.nvim.screen()
    chat.nvim.feed("[b")
    chat.nvim.wait_screen("the old one")


MODELS = [
    {"adapter": "openai", "models": [{"name": "gpt-4o", "window": 128000}, {"name": "gpt-4.1", "window": 1000000}]},
    {"adapter": "offline", "models": [{"name": "offline", "window": 1000000}]},
]


def test_model_and_adapter_are_named_completed_and_refused(chat: ChatDriver) -> None:
    """This adapter's models are matched first, then any.

    A near miss is refused with a suggestion, and a free-form name is accepted.
    """
    chat.answer("list_models", MODELS)
    send(chat, "/model gpt-4.1")
    chat.nvim.wait_for(lambda: len(chat.sent("set_model")) == 1, "set_model")
    send(chat, "/adapter offline")
    chat.nvim.wait_for(lambda: len(chat.sent("set_model")) == 2, "set_model")
    send(chat, "/model brand-new-thing")
    chat.nvim.wait_for(lambda: len(chat.sent("set_model")) == 3, "set_model")
    given = [(sent["adapter"], sent.get("model") or "") for sent in chat.sent("set_model")]
    assert given == [("openai", "gpt-4.1"), ("offline", ""), ("openai", "brand-new-thing")]
    send(chat, "/model gpt-4p")
    chat.nvim.wait_for(lambda: chat.input() == "/model gpt-4p", "the refused command")
    assert "did you mean gpt-4o? The model was not changed." in chat.text()
    chat.nvim.feed("<Esc>cc/adapter off<C-x><C-o>")
    chat.nvim.wait_for(lambda: chat.input() == "/adapter offline", "the completed adapter")


def test_several_files_are_marked_in_the_list(chat: ChatDriver) -> None:
    """Without a picker plugin, a non-blocking list opens in normal mode, even from insert mode."""
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    for name in ("a.lua", "b.lua", "c.lua"):
        (work / name).write_text("return 1\n")
    chat.nvim.feed("i/file<C-s>")
    chat.nvim.wait_screen("<Tab> mark")
    chat.nvim.wait_for(lambda: chat.nvim.request("nvim_get_mode")["mode"] == "n", "normal mode")
    chat.nvim.feed("gg<Tab>j<Tab><CR>")
    chat.nvim.wait_for(lambda: len(chat.sent("attach")) == 2, "two files")
    assert sorted(Path(sent["path"]).name for sent in chat.sent("attach")) == ["a.lua", "c.lua"]
    assert chat.nvim.lua("return vim.bo.filetype") == "codecompanion"


@pytest.mark.parametrize("key", ["<C-c>", "q", "<Esc>"])
def test_a_list_can_be_left_without_a_traceback(chat: ChatDriver, key: str) -> None:
    """Nothing is chosen and no message appears."""
    chat.answer("list_policies", [{"name": "cowork", "description": "x", "current": False}])
    send(chat, "/policy")
    chat.nvim.wait_screen("cowork · x")
    chat.nvim.feed(key)
    chat.nvim.wait_for(lambda: "cowork · x" not in chat.nvim.screen(), "the end of the list")
    assert chat.sent("set_policy") == []
    assert chat.nvim.messages() == ""


def test_interrupting_the_users_picker_causes_no_traceback(chat: ChatDriver) -> None:
    """`<C-c>` raises an error in a `vim.ui.select` based on `inputlist()`; other errors are still reported."""
    chat.answer("list_policies", [{"name": "cowork", "description": "x", "current": False}])
    chat.nvim.lua("vim.ui.select = function() error('Keyboard interrupt') end")
    send(chat, "/policy")
    chat.nvim.wait_for(lambda: chat.sent("list_policies"), "the list")
    chat.nvim.settle()
    assert chat.nvim.messages() == ""
    chat.nvim.lua("vim.ui.select = function() error('picker broken', 0) end")
    send(chat, "/policy")
    chat.nvim.wait_screen("codecompanion: picker broken")
    assert not chat.nvim.blocked()
