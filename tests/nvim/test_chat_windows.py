"""Windows that cannot show another buffer cause a split or one sentence, never a traceback with a hit-enter prompt."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from harness import Nvim

SPLIT = {"display": {"chat": {"window": {"layout": "vertical"}}}}


def calm(chat: ChatDriver) -> None:
    """Assert that no prompt waits for a key and Neovim itself printed nothing."""
    chat.nvim.settle()
    assert not chat.nvim.blocked()
    assert "E5108" not in chat.nvim.messages()
    assert "Error" not in chat.nvim.messages()


@pytest.mark.parametrize("why", ["set nohidden | call setline(1, 'unsaved')", "set winfixbuf"])
def test_gf_splits_if_no_window_can_take_the_file(nvim_factory: Callable[..., Nvim], why: str) -> None:
    """This used to fail with E37 and E1513."""
    chat = make_chat(nvim_factory, options=SPLIT)
    (chat.nvim.root / "work" / "found.txt").write_text("found it\n")
    chat.nvim.command("wincmd p")
    chat.nvim.command(why)
    chat.nvim.command("wincmd p")
    chat.push(events.ContextItems(items=(events.ContextItem(id="i", kind="file", label="found.txt"),)))
    chat.nvim.feed("ggjgf")
    chat.nvim.wait_screen("found it")
    assert chat.nvim.lua("return { #vim.api.nvim_list_wins(), vim.wo.winfixbuf }") == [3, False]
    calm(chat)
    chat.nvim.command("wincmd t")
    chat.nvim.lua("require('codecompanion.screen.open_file').file(vim.fn.fnamemodify('found.txt', ':p'), 1)")
    assert chat.nvim.lua("return { #vim.api.nvim_list_wins(), vim.fn.expand('%:t') }") == [3, "found.txt"]


def test_a_fixed_window_of_a_chat_accepts_other_chats(nvim_factory: Callable[..., Nvim]) -> None:
    """'winfixbuf' keeps files out of a sidebar; `/new`, `]b` and `/fork` work in it."""
    chat = make_chat(nvim_factory, options=SPLIT)
    chat.accept("the first chat")
    first = chat.id
    chat.nvim.command("set winfixbuf")
    chat.nvim.lua("require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').last_chat(), '/new')")
    chat.nvim.feed("G<CR>")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")
    assert "the first chat" not in chat.nvim.screen()
    chat.nvim.feed("]b")
    chat.nvim.wait_screen("the first chat")
    replace = "require('codecompanion.chat.life').replace(require('codecompanion.chat').by_buffer(), ...)"
    chat.nvim.lua(replace, "f0f0f0f0f0f0f0f0")
    assert chat.nvim.lua("return require('codecompanion.chat').by_buffer().id") == "f0f0f0f0f0f0f0f0"
    assert chat.nvim.lua("return vim.wo.winfixbuf")
    assert first in [sent["chat"] for sent in chat.sent("open_chat")]
    calm(chat)


@pytest.mark.parametrize(
    "how",
    [
        "vim.cmd('CodeCompanionChat Toggle')",
        "require('codecompanion').toggle()",
        "require('codecompanion').chat()",
        "require('codecompanion').resume()",
        "require('codecompanion').restore()",
        "require('codecompanion').attach({ 'a.txt' })",
    ],
)
def test_the_command_line_window_rejects_a_chat(chat: ChatDriver, how: str) -> None:
    """This applies to the command and to keys mapped to Lua functions; both used to fail with E11."""
    asked = len(requests(chat))
    chat.nvim.feed(":<C-f>")
    chat.nvim.wait_lua("return vim.fn.getcmdwintype() == ':'")
    chat.nvim.lua(how)
    chat.nvim.wait_screen("Not in the command-line window; :q leaves it")
    assert chat.nvim.lua("return #require('codecompanion.chat').list()") == 1
    assert {request["verb"] for request in requests(chat)[asked:]} <= {"list_sessions"}
    calm(chat)


def requests(chat: ChatDriver) -> list[dict[str, str]]:
    verbs = "return vim.tbl_map(function(r) return { verb = r.verb } end, require('codecompanion.host').requests)"
    return list(chat.nvim.lua(verbs))


@pytest.mark.parametrize(
    ("item", "indent"),
    [("- ", 2), ("10. ", 4), ("  * ", 4), ("3) ", 3), ("- [x] ", 6), ("no item: ", 0), ("    indented ", 4)],
)
def test_a_list_item_is_continued_below_its_text(nvim_factory: Callable[..., Nvim], item: str, indent: int) -> None:
    chat = make_chat(nvim_factory, size=(40, 20))
    chat.reply(item + "words of an item that is too long for the width of this window, indeed")
    rows = chat.nvim.wait_screen("indeed").split("\n")
    first = next(number for number, row in enumerate(rows) if row.startswith(item.rstrip()))
    last = next(number for number, row in enumerate(rows) if "indeed" in row)
    assert last > first
    assert {len(row) - len(row.lstrip()) for row in rows[first + 1 : last + 1]} == {indent}


def test_a_file_in_the_window_of_a_chat_has_its_own_options(nvim_factory: Callable[..., Nvim]) -> None:
    chat = make_chat(nvim_factory)
    names = ["breakindent", "breakindentopt", "linebreak", "wrap", "foldtext"]
    (chat.nvim.root / "work" / "a.txt").write_text("a\n")
    read = "return vim.tbl_map(function(name) return vim.wo[name] end, ...)"
    assert chat.nvim.lua(read, names)[:2] == [True, "list:-1"]
    chat.nvim.command("edit a.txt")
    assert chat.nvim.lua(read, names) == [False, "", False, True, "foldtext()"]
    chat.nvim.command("buffer #")
    assert chat.nvim.lua(read, names)[:2] == [True, "list:-1"]
