"""Slash commands and their completion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chat_driver import ChatDriver
from codecompanion import events


def send(chat: ChatDriver, text: str) -> None:
    """Put `text` into the input and press the send key."""
    chat.nvim.lua("require('codecompanion.chat.draft').set(require('codecompanion.chat').last_chat(), ...)", text)
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
        "/unknown",
        "/compactor",
        "/clear the table",
        "/file a\nand more",
        "x /help",
    ],
)
def test_what_is_no_command_is_sent_as_text(chat: ChatDriver, text: str) -> None:
    """A path must be sendable, and so must a sentence that begins like a command."""
    send(chat, text)
    assert [request["text"] for request in chat.sent("submit")] == [text]


def test_compact_asks_and_passes_the_instructions_on(chat: ChatDriver) -> None:
    """R-533: instructions may take several lines; No means no."""
    choose(chat, 2)
    send(chat, "/compact")
    assert chat.sent("compact") == []
    choose(chat, 1)
    send(chat, "/compact keep the API\nand the names")
    assert chat.sent("compact") == [{"chat": chat.id, "instructions": "keep the API\nand the names"}]
    assert chat.sent("submit") == []
    assert chat.input() == ""


def test_the_compact_command_with_a_bang_does_not_ask(chat: ChatDriver) -> None:
    """:CodeCompanionCompact! goes straight to the host."""
    chat.nvim.lua("require('codecompanion.chat').compact('short', { ask = false })")
    assert chat.sent("compact") == [{"chat": chat.id, "instructions": "short"}]


def test_clear_and_help(chat: ChatDriver) -> None:
    """One asks the host, the other shows keys and commands."""
    send(chat, "/clear")
    assert len(chat.sent("clear")) == 1
    chat.nvim.request("nvim_ui_try_resize", 100, 50)
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
    send(chat, "/file missing.lua")
    assert "! There is no readable file missing.lua." in chat.nvim.screen()
    choose(chat, 1)
    send(chat, "/image")
    chat.nvim.wait_for(lambda: len(chat.sent("attach")) == 2, "the image")
    assert chat.sent("attach")[1] == {"chat": chat.id, "kind": "image", "path": str(work / "b.png")}


def test_buffer_attaches_unsaved_text(chat: ChatDriver) -> None:
    """What the buffer holds, not what the disk holds."""
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    (work / "a.lua").write_text("saved\n")
    chat.nvim.lua("local b = vim.fn.bufadd('a.lua'); vim.fn.bufload(b); vim.bo[b].buflisted = true")
    chat.nvim.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.lua'), 0, -1, false, { 'unsaved' })")
    send(chat, "/buffer a.lua")
    assert chat.sent("attach") == [
        {"chat": chat.id, "kind": "buffer", "path": str(work / "a.lua"), "text": "unsaved\n"}
    ]
    send(chat, "/buffer nothing")
    assert "! There is no buffer nothing." in chat.nvim.screen()


def test_rules_are_chosen_from_the_hosts_list(chat: ChatDriver) -> None:
    """R-549: pick a group, it is added."""
    chat.answer("list_rules", [{"name": "default", "description": "Common files", "files": ["AGENTS.md"]}])
    choose(chat, 1)
    send(chat, "/rules")
    chat.nvim.wait_for(lambda: chat.sent("add_rules"), "add_rules")
    assert chat.sent("add_rules") == [{"chat": chat.id, "group": "default"}]
    assert chat.nvim.lua("return _G.shown") == ["default · Common files · 1 files"]


def test_changing_the_model(chat: ChatDriver) -> None:
    """`ga` lists all adapters and their models; the header shows the new one."""
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
    assert chat.nvim.lua("return _G.shown") == ["openai · gpt-4o · 128k · current", "offline · offline · 1M"]
    chat.push(events.ModelChanged(adapter="offline", model="offline", window=1000000))
    chat.nvim.wait_for(lambda: " offline · offline" in chat.nvim.screen().split("\n")[-2], "the status line")


def test_yolo_mode_is_visible(chat: ChatDriver) -> None:
    """Switching approvals off must not go unnoticed."""
    chat.nvim.feed("gty")
    chat.nvim.wait_screen(r"## Me +YOLO")
    chat.nvim.feed("gty")
    chat.nvim.wait_for(lambda: "YOLO" not in chat.nvim.screen(), "YOLO to go")
    assert [request["on"] for request in chat.sent("set_yolo")] == [True, False]


def test_completion_offers_commands_and_paths(chat: ChatDriver) -> None:
    """Native completion, at the start of the input only."""
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    (work / "only_this.lua").write_text("")
    chat.nvim.feed("i/co<C-x><C-o>")
    chat.nvim.wait_for(lambda: chat.input() == "/compact", "the completed command")
    chat.nvim.feed("<Esc>ddi/<C-x><C-o>")
    screen = chat.nvim.wait_screen(r"/rules \[group\] +Add a group of rules")
    assert "/compact [instructions]" in screen
    chat.nvim.feed("<C-e><Esc>cc/file on<C-x><C-o>")
    chat.nvim.wait_for(lambda: chat.input() == "/file only_this.lua", "the completed path")
    chat.nvim.feed("<Esc>ccfirst<CR>/co<C-x><C-o>")
    chat.nvim.settle()
    assert chat.input() == "first\n/co"


def test_keys_can_be_changed_and_switched_off(chat: ChatDriver) -> None:
    """Every mapping has a description and can be disabled."""
    chat.setup(
        {
            "display": {"chat": {"window": {"layout": "buffer"}}},
            "interactions": {"chat": {"keymaps": {"close": False, "send": {"modes": {"n": "<C-y>"}}}}},
        }
    )
    chat.open()
    maps = {
        item["lhs"]: item.get("desc", "") for mode in "ni" for item in chat.nvim.request("nvim_buf_get_keymap", 0, mode)
    }
    assert "<C-C>" not in maps
    assert "<C-Y>" in maps
    assert "<CR>" not in maps
    assert all(maps.values()), maps
    chat.nvim.wait_screen(r"<C-y> send · \? help")


def test_headers_are_jumped_to_by_mark_not_by_text(chat: ChatDriver) -> None:
    """`]]` and `[[` pass over headings inside messages."""
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
def test_the_sources_of_completion_plugins_offer_the_same(chat: ChatDriver, module: str) -> None:
    """Their documented interfaces, called as they call them."""
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
def test_a_chat_of_another_neovim_takes_no_command(chat: ChatDriver, command: str) -> None:
    """It says why, instead of asking the host for a chat that it does not have."""
    choose(chat, 1)
    chat.opened(read_only=True)
    send(chat, command)
    assert chat.text().count("another Neovim") == 2
    assert [chat.sent(verb) for verb in ("go_on", "compact", "clear")] == [[], [], []]


def test_continue_lets_the_model_go_on(chat: ChatDriver) -> None:
    send(chat, "/continue")
    [request] = chat.sent("go_on")
    assert request["chat"] == chat.id
    assert chat.input() == ""
