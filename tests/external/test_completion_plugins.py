"""Accepting a completion in blink.cmp and nvim-cmp themselves, as the help sets them up.

Needs clones of Saghen/blink.cmp and hrsh7th/nvim-cmp: `$BLINK_CMP` and `$NVIM_CMP`, or /work/.mirror; skips and says so
otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from plugin_managers import clone_of

from harness import Nvim
from real_chat import RealChat, start_chat
from tests.providers.chat.thread import ChatServerThread

BLINK = """
vim.opt.rtp:append(%r)
require("blink.cmp").setup({
  fuzzy = { implementation = "lua" },
  sources = {
    per_filetype = { codecompanion = { "codecompanion" } },
    providers = { codecompanion = { name = "CodeCompanion", module = "codecompanion.completion.blink" } },
  },
})
"""
CMP = """
vim.opt.rtp:append(%r)
vim.cmd.runtime("plugin/cmp.lua")
require("cmp").register_source("codecompanion", require("codecompanion.completion.cmp").new())
require("cmp").setup({ mapping = { ["<C-y>"] = require("cmp").mapping.confirm({ select = true }) } })
require("cmp").setup.filetype("codecompanion", { sources = { { name = "codecompanion" } } })
"""
PLUGINS = {"blink": ("BLINK_CMP", "Saghen+blink.cmp", BLINK), "cmp": ("NVIM_CMP", "hrsh7th+nvim-cmp", CMP)}
SHOW = {"blink": "require('blink.cmp').show()", "cmp": "require('cmp').complete()"}
VISIBLE = {"blink": "return require('blink.cmp').is_menu_visible()", "cmp": "return require('cmp').visible()"}


@pytest.fixture
def nvim_factory(tmp_path: Path) -> Iterator[Callable[..., Nvim]]:
    """Return what starts a Neovim with the repository on its runtimepath."""
    with ExitStack() as stack:

        def start(**options: Any) -> Nvim:
            return stack.enter_context(Nvim(options.pop("root", tmp_path), **options))

        yield start


@pytest.mark.parametrize("plugin", ["blink", "cmp"])
def test_what_is_accepted_is_what_was_shown(nvim_factory: Callable[..., Nvim], tmp_path: Path, plugin: str) -> None:
    """No brackets behind it, and in its place behind letters of several bytes."""
    variable, mirrored, init = PLUGINS[plugin]
    folder = clone_of(variable, mirrored, tmp_path / plugin)
    with ChatServerThread() as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("src/stack.py", "x = 1\n")], opened=False)
        chat.nvim.lua("load(...)()", init % str(folder))
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
            chat.nvim.feed("<C-y>")
            chat.nvim.wait_for(lambda expected=expected: accepted(chat) == expected, expected)
            chat.nvim.feed("<Esc>")
            chat.nvim.lua("require('codecompanion.chat.wire.draft').take(require('codecompanion.chat').current())")


def accepted(chat: RealChat) -> str:
    """Return what stands in the input."""
    return chat.draft().rstrip()
