"""The palette lists everything that a chat can do, once each, with its key or command.

`/` and `g?` show the essentials.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from chat_driver import ChatDriver, make_chat
from harness import Nvim

LIST = """
local context = require('codecompanion.prompt_library.prompt_context').look()
return vim.tbl_map(function(action)
  return { action.group, action.name, action.from }
end, require('codecompanion.commands.palette_entries').list(context, true))
"""
WITHOUT_MODEL = LIST.replace("(context, true)", "(context, false)")
SLASH = "return vim.tbl_map(function(c) return c.name end, require('codecompanion.chat.slash').%s())"


def wide(nvim_factory: Callable[..., Nvim]) -> ChatDriver:
    return make_chat(nvim_factory, size=(120, 110))


def test_the_palette_has_every_command_and_key_once(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    entries = chat.nvim.lua(LIST)
    names = Counter(name for _, name, _ in entries)
    assert [name for name, times in names.items() if times > 1] == []
    ways = {way for _, _, ways in entries for way in re.split(r"  | · ", ways)}
    for command in chat.nvim.lua(SLASH % "list"):
        as_command = f":CodeCompanion{command.capitalize()}"
        assert ways & {f"/{command}", as_command, f":CodeCompanion {command}"}, command
    covered = {"adapter", "chat", "resume", "toggle", "reopen", "trust", "approval"}
    for name in chat.nvim.lua("return vim.tbl_keys(require('codecompanion.commands.subcommands'))"):
        known = {f":CodeCompanion {name}", f"/{name}", f":CodeCompanion{name.capitalize()}"}
        assert name in covered or ways & known, name
    for former in ("New chat", "Resume a chat", "Change the adapter", "Choose a model"):
        assert former not in [name for group, name, _ in entries if group != "open"], former
    rows = {name: ways for _, name, ways in entries}
    assert rows["Change the model"] == "ga  /model  :CodeCompanion adapter"
    assert rows["Resume a stored chat"] == "/resume  :CodeCompanionChat Resume"
    without = chat.nvim.lua(WITHOUT_MODEL)
    assert [name for _, name, _ in without if "model" in name.split()] == ["Choose a model"]
    assert {"<CR>", "gd", "gX", "g2", "ga", "gtr", ":CodeCompanionChanges", ":CodeCompanionCmd"} <= ways


def test_the_palette_outside_a_chat_offers_its_commands_and_no_keys(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    chat.nvim.command("enew")
    entries = chat.nvim.lua(LIST)
    found = {way for group, _, ways in entries for way in ways.split("  ") if group == "chat"}
    assert {"/compact", "/cost", ":CodeCompanionTrace"} <= found
    assert "gX" not in found
    assert ":CodeCompanion trust" in {ways for _, _, ways in entries}


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_row_is_cut(nvim_factory: Callable[..., Nvim], columns: int) -> None:
    """Each has its name and its key or command; 40 columns have only the names, on more than one row if necessary."""
    chat = make_chat(nvim_factory, size=(columns, 110))
    entries = [entry for entry in chat.nvim.lua(WITHOUT_MODEL) if entry[0] == "chat"]
    chat.nvim.command("CodeCompanion")
    chat.nvim.wait_screen("Show or hide the chat")
    assert chat.nvim.lua("return vim.wo.wrap and vim.wo.linebreak")
    rows = chat.nvim.lines()
    assert len(entries) > 50
    for _, name, ways in entries:
        [row] = [row for row in rows if row.startswith("chat") and name in row]
        assert row.endswith(name) if columns == 40 else row.endswith((ways, ways.split("  ")[0])), row
        assert len(row) <= columns - 4 or columns == 40, row


def test_an_entry_runs_and_one_with_an_argument_begins_the_command(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    chat.nvim.command("CodeCompanion")
    chat.nvim.wait_screen("Open a new chat in this window +/new  :CodeCompanionChat New")
    chat.nvim.feed("/Attach the text of a web page<CR><CR>")
    chat.nvim.wait_for(lambda: chat.nvim.lines()[-1] == "/fetch ", "the beginning of the command")
    chat.nvim.wait_lua("return vim.api.nvim_get_mode().mode == 'i'")
    chat.nvim.feed("<Esc>")
    chat.nvim.command("CodeCompanion")
    chat.nvim.wait_screen("Show the cost of the chat +/cost")
    chat.nvim.feed("/Show the cost of the chat<CR><CR>")
    chat.nvim.wait_for(lambda: chat.sent("show_cost"), "the request for the report")


def test_a_slash_lists_half_of_the_commands_and_a_letter_finds_all(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    every, listed = chat.nvim.lua(SLASH % "list"), chat.nvim.lua(SLASH % "listed")
    assert len(listed) <= len(every) * 0.6
    complete = "require('codecompanion.chat.ui.complete_input')"
    items = f"return vim.tbl_map(function(i) return i.word end, select(2, {complete}"
    row = chat.nvim.lua("return vim.api.nvim_win_get_cursor(0)[1] - 1")
    current = "require('codecompanion.chat').current()"
    assert chat.nvim.lua(f"{items}.items({current}, {row}, '/')))") == [f"/{name}" for name in listed]
    assert "/trace" in chat.nvim.lua(f"{items}.items({current}, {row}, '/t')))")


def test_the_former_name_of_rename_still_works(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    chat.nvim.feed("i/title A new name<Esc><CR>")
    chat.nvim.wait_for(lambda: chat.sent("rename_session"), "rename_session")
    assert chat.sent("rename_session")[0]["title"] == "A new name"
    assert "title" not in chat.nvim.lua(SLASH % "list")


def test_the_manual_opens_at_an_option_a_tag_or_words(nvim_factory: Callable[..., Nvim]) -> None:
    """Most options have no tag; `:help` would fail with E149."""
    chat = wide(nvim_factory)
    for topic, expected in {
        "display.chat.fold_tools": "    `fold_tools` = ",
        "fold_tools": "    `fold_tools` = ",
        "interactions.chat.opts.policy": "*codecompanion.interactions.chat.opts.policy*",
        "codecompanion-undo": "*codecompanion-undo*",
        "CodeCompanionCmd": "*:CodeCompanionCmd*",
        "always": "*codecompanion-always*",
        "g1": "*codecompanion-g1*",
        "token counts can be written": "Token counts can be written",
    }.items():
        chat.nvim.command(f"CodeCompanion help {topic}")
        assert expected in chat.nvim.lua("return vim.api.nvim_get_current_line()"), topic
        assert chat.nvim.lua("return vim.bo.filetype") == "help"
    offered = chat.nvim.lua("return vim.fn.getcompletion('CodeCompanion help display.chat.f', 'cmdline')")
    assert "display.chat.fold_tools" in offered
    chat.nvim.command("CodeCompanion help gibberish_of_nobody")
    chat.nvim.wait_for(lambda: "nothing about gibberish_of_nobody" in chat.nvim.messages(), "the sentence")
