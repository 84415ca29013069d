"""File names and titles that Vim or the shell would interpret are treated as plain names."""

from __future__ import annotations

import os

from files_desk import tool
from tests.providers.chat.answers import reply


def test_a_file_name_is_never_run_or_expanded(desk):
    """In `:CodeCompanionRevert {path}`, backticks would run a command in `expand()` and brackets match other files."""
    name = "`touch pwned`.txt"
    user = desk(tool("create_file", path=name, content="x\n"), reply("ok"))
    user.say()
    assert (user.root / name).exists()
    user.nvim.command("tabfirst")
    user.nvim.lua("vim.cmd.CodeCompanionRevert(...)", name)
    user.nvim.wait_for(lambda: not (user.root / name).exists(), "the revert")
    assert not (user.root / "pwned").exists()


def test_a_name_with_a_line_break_is_listed(desk):
    user = desk(tool("create_file", path="two\nlines.txt", content="x\n"), reply("ok"))
    user.say()
    user.nvim.command("CodeCompanionRevert")
    user.nvim.wait_screen("File changes")
    assert any("create_file two" in line for line in user.nvim.lines())


def test_a_deleted_dangling_link_is_restored(desk):
    user = desk(tool("delete_file", path="link"), reply("ok"))
    (user.root / "link").symlink_to("nowhere")
    user.chat.send("go")
    user.chat.press_on_approval("g2")
    user.nvim.wait_for(lambda: user.chat.finished() == 1, "the end of the turn")
    user.chat.wait_state("idle")
    assert not os.path.lexists(user.root / "link")
    user.nvim.command("CodeCompanionRevert turn")
    user.nvim.wait_screen("Reverted link")
    assert (user.root / "link").readlink().as_posix() == "nowhere"
