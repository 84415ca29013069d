"""The same suggestions in completion menus and in Neovim's own inline completion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ghost import Ghost, start
from harness import Nvim, find_nvim, other_nvims

VERSIONS = [find_nvim() or "nvim", *other_nvims()]

# The arguments that blink.cmp and nvim-cmp pass to a source, and their use of its answer.
ASK_BLINK = """
local cursor = vim.api.nvim_win_get_cursor(0)
local source = require("codecompanion.inline.blink").new()
_G.enabled, _G.result = source:enabled(), nil
_G.cancel = source:get_completions({
  bufnr = vim.api.nvim_get_current_buf(), cursor = cursor, line = vim.api.nvim_get_current_line(),
}, function(result) _G.result = result end)
"""
ASK_CMP = """
local cursor = vim.api.nvim_win_get_cursor(0)
_G.source = _G.source or require("codecompanion.inline.cmp").new()
_G.enabled, _G.result = source:is_available(), nil
source:complete({ context = {
  bufnr = vim.api.nvim_get_current_buf(), cursor = { row = cursor[1], col = cursor[2] + 1 },
  cursor_before_line = vim.api.nvim_get_current_line():sub(1, cursor[2]),
} }, function(result) _G.result = result end)
"""
APPLY = "vim.lsp.util.apply_text_edits({ _G.result.items[1].textEdit }, vim.api.nvim_get_current_buf(), 'utf-8')"


def result(ghost: Ghost, ask: str) -> dict[str, Any]:
    """Request completions from a source and wait for its answer."""
    ghost.nvim.lua(ask)
    found: dict[str, Any] = ghost.nvim.wait_lua("return _G.result")
    return found


@pytest.mark.parametrize("ask", [ASK_BLINK, ASK_CMP], ids=["blink", "cmp"])
def test_a_menu_gets_the_typed_word_with_its_continuation(nvim_factory: Callable[..., Nvim], ask: str) -> None:
    """The entry begins with the word being typed, because menus compare entries with it."""
    ghost = start(nvim_factory, options={"display": "none"})
    ghost.open("é.py", "é = fo", (1, 7))
    ghost.suggest("o(bar)\n    .baz()")
    ghost.type("A")
    (item,) = result(ghost, ask)["items"]
    assert ghost.nvim.lua("return _G.enabled")
    assert (item["label"], item["filterText"]) == ("foo(bar)…", "foo(bar)")
    assert item["documentation"]["value"] == "```python\né = foo(bar)\n    .baz()\n```"
    ghost.nvim.lua(APPLY)
    assert ghost.nvim.lines() == ["é = foo(bar)", "    .baz()"]
    assert len(ghost.asked()) == 1
    assert ghost.asked()[0]["column"] == 7


@pytest.mark.parametrize("ask", [ASK_BLINK, ASK_CMP], ids=["blink", "cmp"])
def test_a_menu_gets_an_empty_answer_if_there_is_nothing(nvim_factory: Callable[..., Nvim], ask: str) -> None:
    """The answer has no entries, so the menu does not wait."""
    ghost = start(nvim_factory, options={"display": "none"})
    ghost.open("a.py")
    ghost.suggest("x")
    ghost.type("ia")
    ghost.nvim.command("setlocal readonly")
    assert not result(ghost, ask)["items"]
    assert ghost.asked() == []
    ghost.nvim.command("CodeCompanion complete off")
    ghost.nvim.lua(ask)
    assert ghost.nvim.lua("return _G.enabled") is False


def test_typing_along_in_a_menu_sends_no_request(nvim_factory: Callable[..., Nvim]) -> None:
    """All sources share one answer; a request that the menu no longer needs is cancelled."""
    ghost = start(nvim_factory, options={"display": "none"})
    ghost.open("a.py")
    ghost.suggest("o(bar)")
    ghost.type("ifo")
    assert result(ghost, ASK_BLINK)["items"][0]["label"] == "foo(bar)"
    ghost.type("o")
    assert result(ghost, ASK_CMP)["items"][0]["label"] == "foo(bar)"
    assert len(ghost.asked()) == 1
    ghost.hold()
    ghost.type("x")
    ghost.nvim.lua(ASK_BLINK + "_G.cancel()")
    ghost.wait_asked(2)
    assert len(ghost.asked("cancel_completion")) == 1
    ghost.answer(2, "late")
    assert ghost.nvim.lua("return _G.result == nil")


@pytest.mark.parametrize(
    ("name", "question", "opened"),
    [
        ("blink.cmp", "is_menu_visible", "vim.api.nvim_exec_autocmds('User', { pattern = 'BlinkCmpMenu%s' })"),
        ("cmp", "visible", "_G.fire('menu_%s')"),
    ],
)
def test_a_menu_of_a_plugin_hides_the_ghost_text(
    nvim_factory: Callable[..., Nvim], name: str, question: str, opened: str
) -> None:
    """The text is hidden while a completion menu is open and reappears without a request."""
    ghost = start(
        nvim_factory,
        init=f"local open, heard = false, {{}}\n_G.set = function(value) open = value end\n"
        f"package.loaded['{name}'] = {{ {question} = function() return open end,"
        " event = { on = function(_, event, call) heard[event] = call end } }\n"
        "_G.fire = function(event) heard[event]() end\n",
    )
    words = ("Open", "Close") if name == "blink.cmp" else ("opened", "closed")
    ghost.open("a.py")
    ghost.suggest("GHOST")
    ghost.type("ix")
    ghost.wait_shown("GHOST")
    ghost.hold()
    ghost.nvim.lua("_G.set(true) " + opened.replace("%s", words[0]))
    ghost.wait_shown("")
    ghost.type("G")
    assert ghost.shown() == ""
    ghost.nvim.lua("_G.set(false) " + opened.replace("%s", words[1]))
    ghost.wait_shown("HOST")
    assert len(ghost.asked()) == 1


@pytest.fixture(params=VERSIONS)
def inline(request: pytest.FixtureRequest, nvim_factory: Callable[..., Nvim]) -> Ghost:
    """Return a Neovim with inline completion, on each available version ($NVIM_BINS)."""
    ghost = start(nvim_factory, options={"display": "lsp"}, binary=request.param)
    ghost.nvim.lua(
        "vim.keymap.set('i', '<F2>', function() return vim.lsp.inline_completion.get() and '' or 'X' end,"
        " { expr = true })"
    )
    return ghost


def test_neovim_shows_the_suggestions_itself(inline: Ghost) -> None:
    """On 0.12 they come from a language server in the editor.

    Earlier versions show ghost text and a message about it.
    """
    ghost = inline
    ghost.open("a.py")
    ghost.suggest("range(3):\n    pass")
    ghost.type("i")
    ghost.nvim.wait_lua("return require('codecompanion.inline.completion_status').is_on")
    ghost.type("for i in ")
    ghost.nvim.wait_screen(r"^for i in range\(3\):\n    pass")
    if not ghost.nvim.lua("return vim.lsp.inline_completion ~= nil"):
        assert ghost.shown() != ""
        ghost.nvim.wait_for(lambda: "needs Neovim 0.12" in ghost.nvim.messages(), "the sentence")
        return
    assert ghost.shown() == ""
    ghost.type("<F2>")
    ghost.nvim.wait_for(lambda: ghost.nvim.lines() == ["for i in range(3):", "    pass"], "the text")
    ghost.type("<Esc>")
    ghost.open("COMMIT_EDITMSG")
    ghost.type("ix<Esc>")
    assert ghost.nvim.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 0
    ghost.nvim.command("CodeCompanion complete off")
    ghost.nvim.wait_lua("return #vim.lsp.get_clients() == 0")
    assert ghost.nvim.messages().count("\n") == 0
