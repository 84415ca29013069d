"""Default keys: no key that runs or deletes something is a common Neovim key for something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from approvals import ask
from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from harness import Nvim

CODE = "Look:\n```lua\nlocal one = 1\n```\nand\n````md\n```\ninner\n```\n````\nand `done`."


def go_to(chat: ChatDriver, text: str) -> None:
    """Put the cursor on the first line with `text`."""
    row = next(number for number, line in enumerate(chat.text().split("\n"), 1) if text in line)
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row)


@pytest.mark.parametrize("key", ["gx", "?", "{", "}", "/", "*", "n"])
def test_standard_keys_keep_their_meaning(chat: ChatDriver, key: str) -> None:
    """Keys for opening URLs, searching and paragraph motions are not mapped."""
    assert chat.nvim.lua("return vim.fn.maparg(..., 'n', false, true).buffer or 0", key) == 0


def test_control_c_in_insert_mode_only_leaves_insert_mode(chat: ChatDriver) -> None:
    """In normal mode it closes the chat, as in codecompanion.nvim."""
    # typed while Neovim is busy <C-c> interrupts it instead of being a key
    chat.nvim.feed("idraft")
    chat.nvim.wait_for(lambda: chat.input() == "draft", "what was typed")
    chat.nvim.feed("<C-c>")
    chat.nvim.wait_for(lambda: chat.nvim.request("nvim_get_mode")["mode"] == "n", "normal mode")
    assert chat.sent("close_chat") == []
    chat.nvim.wait_for(lambda: chat.sent("close_chat") or chat.nvim.feed("<C-c>"), "close_chat")


def test_q_stops_a_visible_turn_and_asks_about_one_that_is_not(chat: ChatDriver) -> None:
    """A user reading old turns does not accidentally stop the one running below."""
    chat.accept("question")
    chat.push(events.State(state="streaming", label="streaming"))
    chat.reply("line\n" * 100, end=False)
    chat.nvim.feed("q")
    chat.nvim.wait_for(lambda: len(chat.sent("cancel")) == 1, "cancel")
    chat.nvim.feed("ggq")
    chat.nvim.wait_screen(r"Stop the turn below \(streaming\)\?  \[y\]es  \[n\]o")
    assert len(chat.sent("cancel")) == 1
    chat.nvim.feed("n")
    chat.nvim.wait_for(lambda: "Stop the turn" not in chat.nvim.screen(), "the end of the question")
    chat.nvim.feed("qy")
    chat.nvim.wait_for(lambda: len(chat.sent("cancel")) == 2, "cancel")


def test_closing_a_chat_says_how_to_reopen_it(chat: ChatDriver) -> None:
    chat.accept("hello")
    chat.push(events.TurnFinished(reason="done"), events.TitleChanged(title="hello"))
    chat.nvim.wait_lua("return vim.b.codecompanion_chat.title == 'hello'")
    chat.nvim.feed("<C-c>")
    chat.nvim.wait_screen("Closed hello; :CodeCompanionChat Resume reopens it")


def test_q_ends_a_macro_and_starts_none(chat: ChatDriver) -> None:
    """Otherwise the next key would name a register. In an idle chat, a message says that nothing is running."""
    chat.nvim.feed("q")
    chat.nvim.wait_screen("Nothing is running; <C-c> closes the chat")
    assert chat.nvim.lua("return vim.fn.reg_recording()") == ""
    chat.nvim.command("enew")
    chat.nvim.feed("qaix<Esc>")
    chat.nvim.lua("vim.api.nvim_set_current_buf(require('codecompanion.chat').last_chat().bufnr)")
    assert chat.nvim.lua("return vim.fn.reg_recording()") == "a"
    chat.push(events.State(state="streaming", label="streaming"))
    chat.nvim.feed("q")
    chat.nvim.wait_for(lambda: chat.nvim.lua("return vim.fn.reg_recording()") == "", "the end of the macro")
    assert chat.sent("cancel") == []


def test_gy_yanks_the_block_under_the_cursor_or_the_last_one_above(chat: ChatDriver) -> None:
    """A fence inside a longer fence is text."""
    chat.accept("go")
    chat.reply(CODE)
    for place, wanted in (("local one", "local one = 1\n"), ("inner", "```\ninner\n```\n"), ("and", "local one = 1\n")):
        go_to(chat, place)
        chat.nvim.feed("gy")
        chat.nvim.settle()
        assert chat.nvim.lua("return vim.fn.getreg('\"')") == wanted
    chat.nvim.feed("Ggy")
    chat.nvim.wait_screen("3 lines of code yanked")
    chat.nvim.feed("gggy")
    chat.nvim.wait_screen("No code block here or above")


@pytest.mark.parametrize("size", [(80, 24), (40, 20)])
def test_the_key_list_fits_the_window_and_scrolls(nvim_factory: Callable[..., Nvim], size: tuple[int, int]) -> None:
    """Nothing is cut off at the right, `more below` only if there is more, the approval keys are listed."""
    chat = make_chat(nvim_factory, size=size)
    chat.nvim.feed("g?")
    chat.nvim.wait_screen("╭ Help")
    chat.nvim.feed("g?")
    screen = chat.nvim.wait_screen("more below · / search · q close")
    assert "Keys and commands" in screen
    widest = max(
        chat.nvim.lua("return vim.tbl_map(vim.fn.strdisplaywidth, vim.api.nvim_buf_get_lines(0, 0, -1, false))")
    )
    assert widest <= chat.nvim.lua("return vim.api.nvim_win_get_width(0)")
    text = " ".join(" ".join(chat.nvim.lines()).split())
    for name in ("Accept the change or tool call", "Reject the change or tool call", "/compact [instructions]"):
        assert name in text
    chat.nvim.feed("G")
    chat.nvim.wait_for(lambda: "more below" not in chat.nvim.screen(), "the end of the list")
    assert "q close" in chat.nvim.screen()
    chat.nvim.feed("gg")
    chat.nvim.wait_screen("more below")
    chat.nvim.request("nvim_ui_try_resize", 200, 160)
    chat.nvim.wait_for(lambda: "more below" not in chat.nvim.screen(), "the larger window")


def test_the_fold_key_jumps_forward_outside_a_fold(chat: ChatDriver) -> None:
    """<Tab> is <C-i> to Neovim."""
    chat.accept("one\ntwo\nthree")
    chat.reply("answer")
    chat.nvim.feed("ggGgg<C-o><C-o><Tab>")
    chat.nvim.settle()
    before = chat.nvim.lua("return vim.fn.line('.')")
    chat.nvim.feed("<C-o>")
    chat.nvim.settle()
    assert chat.nvim.lua("return vim.fn.line('.')") != before


def test_closing_a_busy_chat_asks(chat: ChatDriver) -> None:
    """An accidental extra `<C-c>` does not silently drop a pending question or stop a turn."""
    chat.accept("question")
    chat.push(events.State(state="streaming", label="streaming"))
    chat.nvim.press_ctrl_c(lambda: "Closing stops the running turn" in chat.nvim.screen())
    chat.nvim.wait_screen(r"Closing stops the running turn\.  \[h\]ide, keep running  \[c\]lose  \[n\]o")
    chat.nvim.press_ctrl_c(lambda: "Closing stops" not in chat.nvim.screen())
    assert chat.sent("close_chat") == []
    ask(chat)
    chat.nvim.press_ctrl_c(lambda: "Closing cancels the pending approval" in chat.nvim.screen())
    chat.nvim.feed("h")
    chat.nvim.wait_for(lambda: "## Me" not in chat.nvim.screen(), "the chat off the screen")
    assert chat.sent("close_chat") == []
    chat.nvim.command("CodeCompanionChat Toggle")
    chat.nvim.press_ctrl_c(lambda: "Closing cancels the pending approval" in chat.nvim.screen())
    chat.nvim.feed("c")
    chat.nvim.wait_for(lambda: chat.sent("close_chat"), "close_chat")
    chat.nvim.wait_screen("Chat closed, its turn stopped; :CodeCompanionChat Resume reopens it.")


@pytest.mark.parametrize("size", [(80, 24), (40, 20)])
def test_the_help_names_the_tools_that_are_not_sent(nvim_factory: Callable[..., Nvim], size: tuple[int, int]) -> None:
    """It names the tools held back because of a small window, and gives the reason if the model supports none."""
    chat = make_chat(nvim_factory, size=size)
    names = [f"tool_{number}" for number in range(25)]

    def told(**of_tools: Any) -> str:
        chat.push(events.Meter(tokens=100, window=4096, ratio=0.02, exact=True, **of_tools))
        chat.nvim.feed("g?")
        chat.nvim.wait_screen("q close")
        lines = chat.nvim.lines()
        assert max(map(len, lines)) <= size[0]
        chat.nvim.feed("q")
        return " ".join(" ".join(lines).split())

    some = told(held_back=tuple(names[:2]))
    assert some.startswith("Tools not sent in this small window: tool_0, tool_1. /tools full offers all. <CR>, ")
    assert "tool_19, 5 more. /tools full offers all." in told(held_back=tuple(names))
    assert told(no_tools="the model does not support them").startswith("No tools are sent: the model does not support")
    assert "not sent" not in told()
