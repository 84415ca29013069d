"""Tests of accepting a completion in blink.cmp and nvim-cmp themselves, set up as in the help.

Needs clones of saghen/blink.cmp and hrsh7th/nvim-cmp: `$BLINK_CMP` and `$NVIM_CMP`, or /work/.mirror; otherwise the
tests are skipped with a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from neovim_plugins import on_runtimepath

from ghost import start as start_ghost
from harness import Nvim
from real_chat import RealChat, start_chat
from tests.help_file import snippet
from tests.providers.chat.thread import ChatServerThread

BLINK = """
-- without its own matcher, which it would download
local blink = require("blink.cmp")
local setup = blink.setup
blink.setup = function(opts)
  setup(vim.tbl_extend("error", opts, { fuzzy = { implementation = "lua" } }))
end
"""
CMP = """
require("cmp").setup({ mapping = { ["<C-y>"] = require("cmp").mapping.confirm({ select = true }) } })
"""
INIT = {"blink": BLINK, "cmp": CMP}
PLUGINS = {"blink": "saghen+blink.cmp@v1.8.0", "cmp": "hrsh7th+nvim-cmp"}
"""The plugins to test; blink.cmp is pinned, because its next version changes daily and requires Neovim 0.12."""
SHOW = {"blink": "require('blink.cmp').show()", "cmp": "require('cmp').complete()"}
VISIBLE = {"blink": "return require('blink.cmp').is_menu_visible()", "cmp": "return require('cmp').visible()"}


@pytest.fixture
def nvim_factory(tmp_path: Path) -> Iterator[Callable[..., Nvim]]:
    """Return a function that starts Neovim with the repository on its runtimepath."""
    with ExitStack() as stack:

        def start(**options: Any) -> Nvim:
            return stack.enter_context(Nvim(options.pop("root", tmp_path), **options))

        yield start


@pytest.mark.parametrize("plugin", ["blink", "cmp"])
def test_the_accepted_item_is_the_displayed_one(nvim_factory: Callable[..., Nvim], tmp_path: Path, plugin: str) -> None:
    """No brackets follow it, and its position is correct after multibyte letters."""

    def start(init: str, **options: Any) -> Nvim:
        return nvim_factory(init=on_runtimepath(PLUGINS[plugin]) + init, **options)

    with ChatServerThread() as server:
        chat = start_chat(start, tmp_path, server, files=[("src/stack.py", "x = 1\n")], opened=False)
        chat.nvim.lua(INIT[plugin] + snippet(f"codecompanion-task-{plugin}"))
        chat.open()
        for typed, expected in (
            ("/fetc", "/fetch"),
            ("#{quickf", "#{quickfix}"),
            ("où est #{quickf", "où est #{quickfix}"),
            ("日本 @src/st", "日本 @src/stack.py"),
            ("@{run_comm", "@{run_command}"),
        ):
            chat.nvim.feed("i" + typed)
            chat.nvim.lua(SHOW[plugin])
            chat.nvim.wait_lua(VISIBLE[plugin])
            chat.nvim.wait_screen(re.escape(expected.split()[-1]))  # a plugin keeps its old menu for a moment
            chat.nvim.feed("<C-y>")
            chat.nvim.wait_for(lambda expected=expected: accepted(chat) == expected, expected)
            chat.nvim.feed("<Esc>")
            chat.nvim.lua("require('codecompanion.chat.wire.draft').take(require('codecompanion.chat').current())")


@pytest.mark.parametrize("plugin", ["blink", "cmp"])
@pytest.mark.parametrize("is_loaded_first", [True, False])
def test_the_source_registers_itself(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, plugin: str, is_loaded_first: bool
) -> None:
    """`/` opens the plugin's menu with the slash commands, not with the folders of the root."""

    def start(init: str, **options: Any) -> Nvim:
        return nvim_factory(init=on_runtimepath(PLUGINS[plugin]) + init, **options)

    setup = INIT[plugin] + ("require('blink.cmp').setup({})" if plugin == "blink" else "")
    with ChatServerThread() as server:
        chat = start_chat(start, tmp_path, server, opened=False)
        if is_loaded_first:
            chat.nvim.lua(setup)
        chat.open()
        if not is_loaded_first:
            chat.nvim.lua(setup)
        chat.nvim.feed("i")
        chat.nvim.settle()
        chat.nvim.feed("/")
        screen = chat.nvim.wait_screen("/compact")
        assert "/usr" not in screen
        assert "etc/" not in screen


def test_a_source_of_the_user_is_not_registered_again(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    def start(init: str, **options: Any) -> Nvim:
        return nvim_factory(init=on_runtimepath(PLUGINS["blink"]) + init, **options)

    with ChatServerThread() as server:
        chat = start_chat(start, tmp_path, server, opened=False)
        chat.nvim.lua(INIT["blink"] + snippet("codecompanion-task-blink").replace("codecompanion = {", "mine = {"))
        chat.open()
        chat.nvim.feed("i")
        chat.nvim.settle()
        providers = chat.nvim.lua("return vim.tbl_keys(require('blink.cmp.config').sources.providers)")
        assert "mine" in providers
        assert "codecompanion" not in providers


def accepted(chat: RealChat) -> str:
    """Return the text in the input."""
    return chat.draft().rstrip()


@pytest.mark.parametrize(("plugin", "number"), [("blink", 1), ("cmp", 2)])
def test_a_suggestion_of_code_is_an_entry_of_the_menu(
    nvim_factory: Callable[..., Nvim], plugin: str, number: int
) -> None:
    """The suggestion can be accepted from the menu."""
    code = INIT[plugin] + snippet("codecompanion-complete-sources", number)
    ghost = start_ghost(nvim_factory, options={"display": "none"}, init=on_runtimepath(PLUGINS[plugin]))
    ghost.nvim.lua(code)
    ghost.open("a.py")
    ghost.suggest("nge(3)")
    for key in "ira":  # one by one, as they are typed: nvim-cmp looks at the text after each
        ghost.type(key)
    ghost.nvim.wait_screen(r"range\(3\)")
    ghost.type("<C-y>")
    ghost.nvim.wait_for(lambda: ghost.nvim.lines() == ["range(3)"], "the text")
