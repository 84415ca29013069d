"""The palette lists everything that a chat can do, once each, with its key or command.

`/` and the second page of `g?` list it too; the first page shows the essentials.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from harness import Nvim

LIST = """
local context = require('codecompanion.prompt_library.prompt_context').look()
return vim.tbl_map(function(action)
  return { action.group, action.name, action.from }
end, require('codecompanion.commands.palette_entries').list(context, true))
"""
WITHOUT_MODEL = LIST.replace("(context, true)", "(context, false)")
SLASH = "return vim.tbl_map(function(c) return c.name end, require('codecompanion.chat.slash').list())"
COMMANDS = """
return vim.tbl_map(function(one) return one.command end, require('codecompanion.command_list').list())
"""
KEYS = """
local keys = require('codecompanion.chat.state.configured_keys')
return vim.iter(require('codecompanion.config.options.keymaps').list()):map(function(option)
  return vim.iter({ 'n', 'i', 'v' }):map(function(mode) return keys.keys(option.name, mode) end):totable()
end):flatten(2):totable()
"""


ALIASES = {"chat", "restore", "resume", "toggle"}
"""Subcommands that are listed by the name of an equal user command."""


def wide(nvim_factory: Callable[..., Nvim]) -> ChatDriver:
    return make_chat(nvim_factory, size=(120, 110))


def test_the_palette_has_every_command_and_key_once(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    entries = chat.nvim.lua(LIST)
    names = Counter(name for _, name, _ in entries)
    assert [name for name, times in names.items() if times > 1] == []
    ways = {way for _, _, ways in entries for way in re.split(r"  | · ", ways)}
    for command in chat.nvim.lua(SLASH):
        assert f"/{command}" in ways, command
    covered = {"adapter", "reopen", "trust", "approval"} | ALIASES
    for name in chat.nvim.lua("return vim.tbl_keys(require('codecompanion.commands.subcommands'))"):
        known = {f":CodeCompanion {name}", f"/{name}", f":CodeCompanion{name.capitalize()}"}
        assert name in covered or ways & known, name
    for former in ("New chat", "Resume a chat", "Change the adapter", "Change the model"):
        assert former not in [name for group, name, _ in entries if group != "open"], former
    rows = {name: ways for _, name, ways in entries}
    assert rows["Choose a model"] == "ga  /model"
    assert rows["Choose an adapter"] == "/adapter  :CodeCompanion adapter"
    assert rows["Resume a stored chat"] == "/resume  :CodeCompanionChat Resume"
    without = chat.nvim.lua(WITHOUT_MODEL)
    assert [name for _, name, _ in without if name.startswith("Choose a")] == ["Choose an adapter"]
    assert {"<CR>", "gd", "gX", "g2", "ga", "gtr", ":CodeCompanionChanges", ":CodeCompanionCmd"} <= ways
    assert [ways for _, _, ways in entries if "commit" in ways] == ["/commit  :CodeCompanion commit"]
    assert {"/help", ":CodeCompanion help"} <= ways, "two actions with one name"


def test_the_palette_outside_a_chat_offers_its_commands_and_no_keys(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    chat.nvim.command("enew")
    entries = chat.nvim.lua(LIST)
    found = {way for group, _, ways in entries for way in ways.split("  ") if group == "chat"}
    assert {"/compact", "/cost", "/trace", ":CodeCompanionTrace"} <= found
    assert "gX" not in found
    assert ":CodeCompanion trust" in {ways for _, _, ways in entries}


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_each_action_has_one_row_with_its_whole_key_or_command(nvim_factory: Callable[..., Nvim], columns: int) -> None:
    """Only the description is cut."""
    chat = make_chat(nvim_factory, size=(columns, 120))
    entries = [entry for entry in chat.nvim.lua(WITHOUT_MODEL) if entry[0] in ("chat", "plugin")]
    entries = [entry for entry in entries if "adapter" not in entry[2]]  # depends on whether there is a model
    chat.nvim.command("CodeCompanion")
    chat.nvim.wait_screen(":CodeCompanion stop")
    rows = chat.nvim.lines()
    assert len(entries) > 80
    for _, name, ways in entries:
        written = ways.split("  ")[0]
        [row] = [row for row in rows if row.endswith((f" {written}", f" {ways}"))]
        shown = re.sub(r"^(chat|plugin) +", "", row).removesuffix(ways).removesuffix(written).rstrip()
        assert name == shown if columns == 120 else name.startswith(shown.rstrip("… ")), row
    assert max(map(len, rows)) <= columns - 4
    assert {"chat", "plugin"} <= set(rows) or columns >= 64, "narrow rows are below the name of their group"


def test_untitled_chats_have_different_names(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    chat.open()
    chat.open()
    assert [name for group, name, _ in chat.nvim.lua(LIST) if group == "open"] == [
        "New chat",
        "New chat (2)",
        "New chat (3)",
    ]


@pytest.mark.parametrize("columns", [40, 120])
def test_the_help_names_every_key_and_command(nvim_factory: Callable[..., Nvim], columns: int) -> None:
    """The first page stays short; the second one is complete, and `/` searches it."""
    chat = make_chat(nvim_factory, size=(columns, 110))
    chat.nvim.feed("<Esc>g?")
    chat.nvim.wait_screen("g[?] all keys · q close")
    essential = re.split(r"  +|\n", "\n".join(chat.nvim.lines()))
    assert len([text for text in essential if text.startswith("/")]) == 5
    assert len([text for text in essential if text.startswith(":")]) == 5
    chat.nvim.feed("g?")
    chat.nvim.wait_screen("/ search · q close")
    shown = chat.nvim.lines()
    words = set(re.split(r"[ ,]+", " ".join(shown)))
    commands = chat.nvim.lua(COMMANDS)
    for name in chat.nvim.lua("return vim.fn.getcompletion('CodeCompanion', 'command')"):
        assert name in commands or name == "CodeCompanionActions"  # :CodeCompanion
    for name in chat.nvim.lua("return vim.fn.getcompletion('CodeCompanionChat ', 'cmdline')"):
        assert f"CodeCompanionChat {name}" in commands or name.endswith("="), name
    for name in chat.nvim.lua("return vim.tbl_keys(require('codecompanion.commands.subcommands'))"):
        assert f"CodeCompanion {name}" in commands or name in ALIASES
    for command in commands:
        assert any(re.match(rf"  :{command}(  |$)", line) for line in shown), command
    assert words >= set(chat.nvim.lua(KEYS)) | {"g1", "g2", "g3", "g4", "g5", "gK", "[c", "]c"}
    assert words >= {f"/{name}" for name in chat.nvim.lua(SLASH)}
    assert {"/approvals", "/adapter", "/trace"} <= words
    chat.nvim.feed("/approvals<CR>")
    chat.nvim.wait_lua("return vim.api.nvim_get_current_line():find('approvals') ~= nil")


def test_paging_stops_at_the_last_line(nvim_factory: Callable[..., Nvim]) -> None:
    """`<C-f>` does not leave empty rows below the text."""
    chat = make_chat(nvim_factory, size=(80, 30))
    chat.nvim.feed("<Esc>g?")
    chat.nvim.wait_screen("all keys")
    chat.nvim.feed("g?")
    chat.nvim.wait_screen("more below")
    chat.nvim.feed("<C-f>" * 9)
    chat.nvim.wait_lua("return vim.fn.line('w$') == vim.fn.line('$')")
    rows = "vim.api.nvim_win_text_height(0, { start_row = vim.fn.line('w0') - 1 }).all"
    chat.nvim.wait_lua(f"return {rows} == vim.api.nvim_win_get_height(0)")


def test_no_description_is_cut_while_its_row_has_free_cells(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    chat.nvim.command("CodeCompanion")
    chat.nvim.wait_screen("Write tests for this code, in the style of the project +/tests")
    for line in chat.nvim.lines():
        assert "…" not in line or len(line) > 110 or "pin …" in line or "commit …" in line, line


def test_an_entry_runs_and_one_with_an_argument_begins_the_command(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    chat.nvim.command("CodeCompanion")
    chat.nvim.wait_screen("Open a new chat +/new  :CodeCompanionChat New")
    chat.nvim.feed("/Attach the text of a web page<CR><CR>")
    chat.nvim.wait_for(lambda: chat.nvim.lines()[-1] == "/fetch ", "the beginning of the command")
    chat.nvim.wait_lua("return vim.api.nvim_get_mode().mode == 'i'")
    chat.nvim.feed("<Esc>")
    chat.nvim.command("CodeCompanion")
    chat.nvim.wait_screen("Show the cost of the chat +/cost")
    chat.nvim.feed("/Show the cost of the chat<CR><CR>")
    chat.nvim.wait_for(lambda: chat.sent("show_cost"), "the request for the report")


def test_a_slash_lists_all_commands(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    complete = "require('codecompanion.chat.ui.complete_input')"
    items = f"return vim.tbl_map(function(i) return i.word end, select(2, {complete}"
    row = chat.nvim.lua("return vim.api.nvim_win_get_cursor(0)[1] - 1")
    current = "require('codecompanion.chat').current()"
    listed = chat.nvim.lua(f"{items}.items({current}, {row}, '/')))")
    assert listed == [f"/{name}" for name in chat.nvim.lua(SLASH)]
    assert {"/trace", "/adapter", "/approvals"} <= set(listed)


def test_the_former_name_of_rename_still_works(nvim_factory: Callable[..., Nvim]) -> None:
    chat = wide(nvim_factory)
    chat.nvim.feed("i/title A new name<Esc><CR>")
    chat.nvim.wait_for(lambda: chat.sent("rename_session"), "rename_session")
    assert chat.sent("rename_session")[0]["title"] == "A new name"
    assert "title" not in chat.nvim.lua(SLASH)


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


def test_a_waiting_chat_is_listed_in_the_words_of_its_bar(nvim_factory: Callable[..., Nvim]) -> None:
    """The row used to show `awaiting_approval`."""
    chat = wide(nvim_factory)
    chat.accept("go")
    chat.push(
        events.State(state="awaiting_approval", label="waiting for your approval: run_command ls"),
        events.ApprovalRequested(call_id="c1", name="run_command", title="run_command ls", body="ls", filetype="sh"),
    )
    chat.nvim.command("CodeCompanion")
    assert "awaiting" not in chat.nvim.wait_screen(r"New chat .*waiting for your approval *│")
