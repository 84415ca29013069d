"""The plugin at startup: commands, maps, and one message if another plugin has the same name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import REPO, Nvim, lua_string, other_nvims

SPY = """
_G.calls = {}
package.loaded["codecompanion.chat"] = setmetatable({}, { __index = function(_, name)
  return function(...)
    local call = { name }
    for position = 1, select("#", ...) do
      local argument = select(position, ...)
      call[position + 1] = argument == nil and vim.NIL or argument
    end
    table.insert(_G.calls, call)
  end
end })
"""


def calls(nvim: Nvim) -> list[list[Any]]:
    """Return the calls of the chat module, each with its name and arguments."""
    return list(nvim.lua("return _G.calls"))


def other_plugin(root: Path) -> Path:
    """Create a plugin with the same name and commands."""
    other = root / "codecompanion.nvim"
    (other / "lua" / "codecompanion").mkdir(parents=True)
    (other / "plugin").mkdir()
    (other / "lua" / "codecompanion" / "init.lua").write_text("return {}\n")
    (other / "plugin" / "codecompanion.lua").write_text(
        "if vim.g.loaded_codecompanion then return end\n"
        "vim.g.loaded_codecompanion = true\n"
        "vim.api.nvim_create_user_command('CodeCompanion', function() _G.other_called = true end, { nargs = '*' })\n"
    )
    return other


def test_startup_loads_no_module_and_no_host(nvim: Nvim) -> None:
    """Startup may take at most 0.1 ms longer, so every `require` is inside a callback."""
    loaded = nvim.lua("return vim.tbl_keys(package.loaded)")
    assert [name for name in loaded if name.startswith("codecompanion")] == []
    assert nvim.lua("return vim.fn.exists(':CodeCompanionCompact')") == 2


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("CodeCompanionChat", ["open", {"reuse": True}]),
        ("CodeCompanionChat Toggle", ["toggle"]),
        ("CodeCompanionChat toggle", ["toggle"]),
        ("CodeCompanionChat Resume", ["resume", "", {"check": True}]),
        ("CodeCompanionChat Resume last", ["resume", "last", {"check": True}]),
        ("CodeCompanion chat", ["open"]),
        ("CodeCompanionCompact", ["compact", None, {"ask": True}]),
        ("CodeCompanionCompact!", ["compact", None, {"ask": False}]),
        ("CodeCompanionCompact keep the  names", ["compact", "keep the  names", {"ask": True}]),
    ],
)
def test_a_command_calls_the_chat(nvim: Nvim, command: str, call: list[Any]) -> None:
    """These are the commands listed in the issue."""
    nvim.lua(SPY)
    nvim.command(command)
    assert calls(nvim) == [call]


def test_a_range_adds_its_lines_to_the_draft(nvim: Nvim) -> None:
    """With a range, the selection is added to the draft."""
    nvim.lua(SPY)
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'one', 'two', 'three' })")
    nvim.command("2,3CodeCompanionChat")
    assert calls(nvim) == [["add_selection", ["two", "three"], [2, 3]]]


def test_plug_maps_do_the_same_as_the_commands(nvim: Nvim) -> None:
    """The <Plug> mappings are for users' own mappings."""
    nvim.lua(SPY)
    nvim.lua("vim.keymap.set('n', '<Space>c', '<Plug>(CodeCompanionToggle)')")
    nvim.lua("vim.keymap.set('x', '<Space>c', '<Plug>(CodeCompanionChat)')")
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'one', 'two' })")
    nvim.feed("<Space>cVj<Space>c")
    nvim.wait_for(lambda: len(calls(nvim)) == 2)
    assert calls(nvim) == [["toggle"], ["add_selection", ["one", "two"], [1, 2]]]


def test_an_unknown_subcommand_names_the_known_ones(nvim_factory: Callable[..., Nvim]) -> None:
    """Bad input."""
    nvim = nvim_factory(size=(160, 30))
    nvim.lua(SPY)
    nvim.command("CodeCompanion isntall")
    nvim.command("CodeCompanionChat Tuggle")
    messages = nvim.wait_for(lambda: "Tuggle" in nvim.messages() and nvim.messages())
    assert "No command isntall; did you mean install?" in messages
    assert "No command Tuggle; did you mean Toggle? :CodeCompanionChat takes Add, New, Resume, Toggle" in messages
    nvim.command("CodeCompanion docstring")
    hint = "No command docstring; <Tab> lists them. To edit with one word, select lines first"
    nvim.wait_for(lambda: hint in nvim.messages())
    assert not nvim.blocked()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("CodeCompanion re", ["reject", "reopen", "restart", "restore", "resume", "review"]),
        ("CodeCompanion install ", ["mcp", "sdk", "semantic"]),
        ("CodeCompanion complete ", ["off", "on", "status"]),
        ("CodeCompanionChat ", ["Add", "New", "Resume", "Toggle", "adapter=", "model=", "policy="]),
        ("CodeCompanionChat a", ["Add", "adapter="]),
        ("CodeCompanionChat adapter=offline ", ["model=", "policy="]),
        ("CodeCompanionChat adapter=anth", ["adapter=anthropic"]),
        ("CodeCompanionChat adapter=offline policy=cow", ["policy=cowork", "policy=cowork_chat"]),
        ("CodeCompanionChat why does ad", []),
        ("CodeCompanionChat t", ["Toggle"]),
        ("'<,'>CodeCompanionChat T", ["Toggle"]),
    ],
)
def test_subcommands_are_completed(nvim: Nvim, line: str, expected: list[str]) -> None:
    """This uses native command-line completion."""
    assert nvim.lua("return vim.fn.getcompletion(..., 'cmdline')", line) == expected


def test_the_log_command_reports_a_missing_log(nvim: Nvim) -> None:
    """No empty buffer is opened for a missing file."""
    nvim.command("CodeCompanion log")
    nvim.wait_for(lambda: "The log is empty" in nvim.messages())


@pytest.mark.parametrize("ours_first", [True, False])
def test_another_plugin_of_the_same_name_is_reported_once(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, ours_first: bool
) -> None:
    """The conflict is reported, instead of the plugin half working, whichever plugin loads first."""
    other = other_plugin(tmp_path)
    add = "prepend" if not ours_first else "append"
    nvim = nvim_factory(init=f"vim.opt.runtimepath:{add}({lua_string(str(other))})\n")
    nvim.lua(SPY)
    if ours_first:
        nvim.command("CodeCompanionChat")
    log = Path(nvim.lua("return vim.fn.stdpath('log')"), "codecompanion.log")
    text = nvim.wait_for(lambda: log.exists() and log.read_text() + nvim.messages(), "the sentence")
    assert str(other) in text
    assert "Keep one of the two" in text
    assert "…" in nvim.messages(), "what does not fit the line is found in the log"
    assert calls(nvim) == []
    assert not nvim.blocked()
    if not ours_first:
        assert nvim.lua("return vim.fn.exists(':CodeCompanionCompact')") == 0
        nvim.command("CodeCompanion")
        assert nvim.lua("return _G.other_called") is True


def test_the_plugin_can_be_disabled_silently(nvim_factory: Callable[..., Nvim]) -> None:
    """`let g:loaded_codecompanion = 1` is the convention."""
    nvim = nvim_factory(init="vim.g.loaded_codecompanion = 1")
    assert nvim.lua("return vim.fn.exists(':CodeCompanion')") == 0
    assert nvim.messages() == ""


def test_sourcing_the_plugin_twice_is_harmless(nvim: Nvim) -> None:
    """A plugin manager may do that."""
    nvim.command(f"source {REPO}/plugin/codecompanion.lua")
    nvim.lua(SPY)
    nvim.command("CodeCompanionChat")
    assert calls(nvim) == [["open", {"reuse": True}]]
    assert nvim.messages() == ""


def test_a_reload_by_a_plugin_manager_recognises_our_commands(nvim: Nvim) -> None:
    """lazy.nvim clears `g:loaded_codecompanion` and sources `plugin/` again, while the commands exist."""
    nvim.lua("vim.g.loaded_codecompanion = nil")
    nvim.command(f"source {REPO}/plugin/codecompanion.lua")
    nvim.lua(SPY)
    nvim.command("CodeCompanionChat")
    assert calls(nvim) == [["open", {"reuse": True}]]
    assert nvim.messages() == ""


def test_setup_without_options_loads_nothing(nvim_factory: Callable[..., Nvim]) -> None:
    """Plugin managers call `setup` with `opts = {}` at every startup; the defaults need no check."""
    nvim = nvim_factory(init="require('codecompanion').setup({})")
    nvim.wait_lua("return vim.v.vim_did_enter == 1")
    nvim.settle()
    loaded = nvim.lua("return vim.tbl_keys(package.loaded)")
    assert [name for name in loaded if name.startswith("codecompanion.")] == []


def test_the_same_folder_twice_on_the_runtimepath_is_one_plugin(
    nvim_factory: Callable[..., Nvim], tmp_path: Path
) -> None:
    """This happens with a symlinked checkout."""
    link = tmp_path / "link"
    link.symlink_to(REPO)
    nvim = nvim_factory(init=f"vim.opt.runtimepath:append({lua_string(str(link))})\n")
    nvim.lua(SPY)
    nvim.command("CodeCompanionChat")
    assert calls(nvim) == [["open", {"reuse": True}]]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("chat('openai')", "opts: expected table, got string"),
        ("chat({ modell = 'gpt' })", 'opts: expected one of adapter, hidden, layout, model, text, got "modell"'),
        ("chat({ model = 4 })", "opts.model: expected string, got number"),
        (
            "chat({ layout = 'left' })",
            'opts.layout: expected one of vertical, horizontal, float, tab, buffer, got "left"',
        ),
        ("resume(1)", "id: expected string, got number"),
        ("restore({})", "id: expected string, got table"),
        ("compact({ 'keep names' })", "instructions: expected string, got table"),
        ("attach('a.txt')", "paths: expected table, got string"),
        ("attach({ 1 })", "paths[1]: expected string, got number"),
    ],
)
def test_a_wrong_argument_is_refused_at_the_call(nvim_factory: Callable[..., Nvim], call: str, reason: str) -> None:
    """This applies to each version of Neovim; nothing else is done or loaded."""
    for binary in [None, *other_nvims()]:
        nvim = nvim_factory(binary=binary)
        nvim.lua(SPY)
        said = nvim.lua(f"local _, problem = pcall(function()\nrequire('codecompanion').{call}\nend) return problem")
        assert said == f'[string "<nvim>"]:2: codecompanion: {reason}'
        assert calls(nvim) == []


def test_the_chat_function_may_be_a_callback(nvim: Nvim) -> None:
    """As the callback of a user command or autocommand, it ignores the argument passed by Neovim."""
    nvim.lua(SPY)
    nvim.lua("vim.api.nvim_create_user_command('Ask', require('codecompanion').chat, {})")
    nvim.lua("vim.api.nvim_create_autocmd('User', { pattern = 'Ask', callback = require('codecompanion').chat })")
    nvim.command("Ask")
    nvim.command("doautocmd User Ask")
    assert [name for name, *_ in calls(nvim)] == ["open", "open"]


def test_the_functions_pass_on_their_arguments(nvim: Nvim) -> None:
    """All arguments except the paths are optional."""
    nvim.lua(SPY)
    for call in (
        "chat()",
        "chat({ model = 'm', hidden = true })",
        "resume()",
        "resume('last')",
        "restore()",
        "compact()",
    ):
        nvim.lua(f"require('codecompanion').{call}")
    assert [name for name, *_ in calls(nvim)] == ["open", "open", "resume", "resume", "restore", "compact"]


def test_the_health_check_works_without_an_environment(nvim_factory: Callable[..., Nvim]) -> None:
    """Without an environment, `:checkhealth codecompanion` does not install anything, hang or fail."""
    nvim = nvim_factory()
    nvim.command("checkhealth codecompanion")
    report = "\n".join(nvim.lines())
    assert "The Python packages are not installed yet" in report
    assert "Not running" in report
    assert "Failed to run healthcheck" not in report


def test_the_health_check_never_shows_a_key(nvim_factory: Callable[..., Nvim]) -> None:
    """It reports only whether one is present."""
    nvim = nvim_factory(env={"MISTRAL_API_KEY": "sk-very-secret", "ANTHROPIC_API_KEY": ""})
    nvim.command("checkhealth codecompanion")
    report = "\n".join(nvim.lines())
    assert "Chosen for new chats: mistral · mistral-medium-latest, because $MISTRAL_API_KEY is set" in report
    assert re.search(r"mistral \(used for new chats\): .*; MISTRAL_API_KEY is set", report)
    assert re.search(r"no key: .*anthropic \(ANTHROPIC_API_KEY\)", report)
    assert "sk-very-secret" not in report


def test_the_health_check_names_the_configuration_and_each_keys_source(
    nvim_factory: Callable[..., Nvim], tmp_path: Path
) -> None:
    """It shows the adapter's kind, URL and key source; a missing required key is a warning."""
    key = tmp_path / "key"
    key.write_text("sk-very-secret")
    init = f"""require("codecompanion").setup({{
      adapters = {{ http = {{
        gateway = {{ extends = "openai_compatible", env = {{ url = "https://me:pw@gw.test/v1?t=pw",
                     api_key = "cmd:pass x" }} }},
        filed = {{ extends = "openai", env = {{ api_key = "file:{key}" }} }},
        lost = {{ extends = "openai", env = {{ api_key = "file:{key}.gone" }} }},
        extend = {{ ollama = {{ opts = {{ context_window = 8192 }} }} }},
      }} }},
      interactions = {{ chat = {{
        adapter = "anthropic",
        opts = {{ context_management = {{ compaction = {{ adapter = "filed" }} }} }},
      }} }},
    }})"""
    nvim = nvim_factory(init=init, env={"ANTHROPIC_API_KEY": "", "OLLAMA_HOST": ""})
    nvim.command("checkhealth codecompanion")
    report = "\n".join(nvim.lines())
    assert re.search(
        r"WARNING.* anthropic \(used for new chats\): anthropic, https://api.anthropic.com; ANTHROPIC_API_KEY is not",
        report,
    )
    assert re.search(r"OK.* filed \(writes summaries\): openai, .*; the key comes from the file ", report)
    assert "gateway: openai_compatible, https://gw.test/v1; the key comes from a command" in report
    assert "which cannot be read" in report
    assert "ollama: openai_compatible, http://127.0.0.1:11434; needs no key" in report
    assert "sk-very-secret" not in report
    assert not re.search(r"\bpw\b", report)
