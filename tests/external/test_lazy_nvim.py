"""The plugin under the real lazy.nvim, as for a new user: installed from a Git URL into an empty home, then restarted.

Needs a clone of folke/lazy.nvim: `$LAZY_NVIM` (a folder or a bare repository), or /work/.mirror. Without one,
`test_manager_order.py` still runs the same steps in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from plugin_managers import (
    EVERY_NVIM,
    Origin,
    answered,
    clone_of,
    environments,
    health,
    loaded_modules,
    missing_commands,
    talk,
)

from fake_uv import fake_uv
from harness import REPO, Nvim, lua_string

pytestmark = pytest.mark.slow("a real plugin manager installs and reloads the plugin")

PROBLEMS = """
local found = {}
for name, plugin in pairs(require("lazy.core.config").plugins) do
  for _, task in ipairs(plugin._.tasks or {}) do
    if task:has_errors() then table.insert(found, name .. " " .. task.name .. ": " .. task:output()) end
  end
end
return found
"""
"""Lua code that returns the errors shown in red in lazy.nvim's window."""

BUILD_OUTPUT = """
for _, task in ipairs(require("lazy.core.config").plugins.codecompanion._.tasks or {}) do
  if task.name == "build" and not task:running() then return task:output() end
end
return false
"""

Start = Callable[..., Nvim]


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return the repository to install from."""
    return Origin(tmp_path)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a Neovim with lazy.nvim and the given spec; all instances share one home."""
    lazy = clone_of("LAZY_NVIM", "folke+lazy.nvim", tmp_path / "lazy.nvim")
    with ExitStack() as stack:

        def start(spec: str, *, setup: str = "", before: str = "", binary: str = EVERY_NVIM[0], **options: Any) -> Nvim:
            init = f"""
{before}
vim.opt.runtimepath:prepend({lua_string(str(lazy))})
require("lazy").setup({{ spec = {{ {spec} }}, {setup} rocks = {{ enabled = false }} }})
"""
            env = fake_uv(tmp_path) | options.pop("env", {})
            nvim = Nvim(tmp_path, init=init, runtimepath=False, env=env, binary=binary, size=(100, 40), **options)
            stack.enter_context(nvim)
            nvim.wait_lua("return vim.v.vim_did_enter == 1")  # it installs while starting up
            return nvim

        yield start


def from_git(origin: Origin, more: str = "opts = {},") -> str:
    """Return the README's first spec, with this repository's URL."""
    return f'{{ url = "{origin.url}", name = "codecompanion", {more} }}'


def leave_the_window(nvim: Nvim) -> None:
    """Close lazy.nvim's window when it is shown."""
    nvim.lua("local view = require('lazy.view'); if view.visible() then view.view:close() end")


@pytest.mark.parametrize("binary", EVERY_NVIM)
def test_a_newcomer_installs_restarts_and_chats(start: Start, origin: Origin, binary: str) -> None:
    """The plugin is cloned, its help tags are generated, it is built and loaded.

    After a restart all commands exist and a chat answers.
    """
    nvim = start(from_git(origin), binary=binary)
    output = nvim.wait_lua(BUILD_OUTPUT)
    assert nvim.lua(PROBLEMS) == []
    assert "Python packages: creating the environment" in output
    assert "the Python environment is ready" in output
    leave_the_window(nvim)
    assert missing_commands(nvim) == [], "also without a restart"
    assert len(environments(nvim)) == 1
    nvim.command("help codecompanion-install")
    assert nvim.lua("return vim.fn.expand('%:t')") == "codecompanion.txt"
    report = health(nvim)
    assert "ERROR" not in report
    assert "The manual has its help tags" in report
    assert "created with uv" in report
    assert not nvim.blocked()
    nvim.__exit__()

    nvim = start(from_git(origin), binary=binary)
    assert missing_commands(nvim) == [], "E492 after the restart"
    assert loaded_modules(nvim) == [], "start-up costs nothing"
    nvim.command("CodeCompanionCost")
    nvim.wait_for(lambda: "No chat is open" in nvim.messages())
    talk(nvim)
    assert len(environments(nvim)) == 1, "the one of the build step"
    assert not nvim.blocked()


def test_the_plugin_loads_at_startup_even_if_lazy_is_the_default(start: Start, origin: Origin) -> None:
    """`defaults.lazy = true` without a trigger would mean never, but a session file needs the plugin at startup."""
    setup = "defaults = { lazy = true },"
    start(from_git(origin), setup=setup).__exit__()
    nvim = start(from_git(origin), setup=setup)
    assert nvim.lua("return require('lazy.core.config').plugins.codecompanion._.loaded ~= nil")
    assert missing_commands(nvim) == []


@pytest.mark.parametrize("origin_entry", ['dir = "{path}"', 'url = "{url}"'])
def test_the_recipe_in_the_readme_installs_as_printed(start: Start, origin: Origin, origin_entry: str) -> None:
    """It works for a clone, and with `url` as described in doc/install.md."""
    text = (REPO / "README.md").read_text(encoding="utf-8")
    [spec] = [block for block in re.findall(r"(?ms)^```lua\n(.*?)^```", text) if block.startswith("{")]
    clone = 'dir = "~/src/codecompanion"'
    assert clone in spec
    nvim = start(spec.replace(clone, origin_entry.format(url=origin.url, path=origin.work)))
    assert nvim.lua(PROBLEMS) == []
    assert missing_commands(nvim) == []
    assert nvim.lua("return require('codecompanion.config').options.interactions.chat.adapter") is None


def test_opts_reach_setup(start: Start, origin: Origin) -> None:
    """`lazy.lua` provides `opts = {}`, which the user's options override."""
    nvim = start(from_git(origin, "opts = { interactions = { chat = { adapter = 'ollama' } } },"))
    assert nvim.lua("return require('codecompanion.config').options.interactions.chat.adapter") == "ollama"
    assert nvim.lua("return require('codecompanion.config').findings().problems") == []


def test_a_fork_under_another_name_works(start: Start, origin: Origin) -> None:
    """`lazy.lua` names `codecompanion`, which must not become a second plugin beside the fork."""
    spec = f'{{ url = "{origin.url}", name = "my-fork", opts = {{}} }}'
    nvim = start(spec)
    assert nvim.lua(PROBLEMS) == []
    nvim.__exit__()
    nvim = start(spec)
    assert sorted(nvim.lua("return vim.tbl_keys(require('lazy.core.config').plugins)")) == ["lazy.nvim", "my-fork"]
    assert nvim.lua("return package.loaded['codecompanion_given'].opts") == []
    assert missing_commands(nvim) == []
    nvim.command("CodeCompanion isntall")
    nvim.wait_for(lambda: "No command isntall" in nvim.messages())
    assert not nvim.blocked()


def test_a_checkout_by_dir_works_without_build_and_tags(start: Start, origin: Origin) -> None:
    """lazy.nvim runs no steps for `dir`; the first chat or the command creates the environment and the tags."""
    nvim = start(f"{{ dir = {lua_string(str(origin.work))}, name = 'codecompanion', opts = {{}} }}")
    assert environments(nvim) == []
    assert not (origin.work / "doc/tags").exists()
    report = health(nvim)
    assert "The Python packages are not installed yet" in report
    assert "there are no help tags" in report
    nvim.command("CodeCompanion help")
    assert nvim.lua("return vim.bo.buftype") == "help"
    nvim.command("quit")
    assert "The manual has its help tags" in health(nvim)
    (origin.work / "doc/tags").unlink()
    assert missing_commands(nvim) == []
    talk(nvim)
    assert len(environments(nvim)) == 1
    nvim.command("help codecompanion-windows")
    assert not nvim.blocked()


def test_reload_keeps_the_commands_and_leaves_no_second_host(start: Start, origin: Origin) -> None:
    """On `:Lazy reload codecompanion`, the host ends with the modules that started it, and a chat starts a new one."""
    start(from_git(origin)).__exit__()
    nvim = start(from_git(origin))
    talk(nvim)
    pid = nvim.lua("return require('codecompanion.host').inspect().pid")
    nvim.lua("require('codecompanion.chat').close()")
    nvim.command("Lazy reload codecompanion")
    nvim.wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the end of the old host")
    assert missing_commands(nvim) == []
    leave_the_window(nvim)
    talk(nvim, "and again")
    assert not nvim.blocked()
    assert "Error" not in nvim.messages()


def test_an_update_with_another_lock_file_creates_a_new_environment_and_reports_it(
    start: Start, origin: Origin
) -> None:
    """The running host belongs to the old version: the user gets one instruction, and nothing is stopped."""
    start(from_git(origin)).__exit__()
    nvim = start(from_git(origin))
    talk(nvim)
    before = environments(nvim)
    pid = nvim.lua("return require('codecompanion.host').inspect().pid")
    origin.publish("requirements.lock", "\n# changed\n")
    nvim.command("Lazy update")
    nvim.wait_for(lambda: len(environments(nvim)) == 2, "a second environment")
    nvim.wait_for(lambda: "Restart Neovim" in nvim.messages(), "what to do")
    assert nvim.messages().count("Restart Neovim") == 1
    assert nvim.lua(PROBLEMS) == []
    leave_the_window(nvim)
    assert Path(f"/proc/{pid}").exists(), "chats go on until then"
    assert answered(nvim)
    assert not nvim.blocked()
    nvim.__exit__()
    nvim = start(from_git(origin))
    talk(nvim)
    assert len(environments(nvim)) == 2, "the new one was ready: nothing is installed at the first chat"
    used = nvim.lua("return require('codecompanion.install').environment()")
    assert used["fresh"]
    assert Path(used["dir"]) not in before


def test_an_update_without_a_running_host_is_silent(start: Start, origin: Origin) -> None:
    """No part of the plugin is in use yet, so nothing has to be restarted."""
    start(from_git(origin)).__exit__()
    nvim = start(from_git(origin))
    origin.publish("requirements.lock", "\n# changed\n")
    nvim.command("Lazy update")
    nvim.wait_for(lambda: len(environments(nvim)) == 2, "a second environment")
    nvim.wait_lua(BUILD_OUTPUT)
    assert "Restart" not in nvim.messages()


def test_a_failed_build_is_one_line_in_lazys_window_and_the_chat_retries(start: Start, origin: Origin) -> None:
    """If there is no network during the installation, the first chat creates the environment."""
    nvim = start(from_git(origin), env={"FAKE_UV_FAILS": "error: Failed to fetch: dns error"})
    problems = nvim.wait_lua(PROBLEMS.replace("return found", "return #found > 0 and found"))
    assert len(problems) == 1
    assert "o network connection" in problems[0]
    assert "traceback" not in problems[0]
    nvim.__exit__()
    nvim = start(from_git(origin))
    assert nvim.lua(PROBLEMS) == []
    talk(nvim)
    assert len(environments(nvim)) == 1


def test_the_checkout_is_the_installed_one(start: Start, origin: Origin) -> None:
    """Otherwise nothing here would prove anything."""
    nvim = start(from_git(origin))
    found = nvim.lua("return vim.api.nvim_get_runtime_file('lua/codecompanion/init.lua', true)")
    assert len(found) == 1
    assert not found[0].startswith(str(REPO))


def test_reloading_with_an_open_chat_redraws_it(start: Start, origin: Origin) -> None:
    """After `:Lazy reload codecompanion`, chat and draft are unchanged, there is one host, and the chat continues."""
    start(from_git(origin)).__exit__()
    nvim = start(from_git(origin))
    talk(nvim)
    nvim.feed("Giand then<Esc>")
    chat = nvim.lua("return require('codecompanion.chat').current().id")
    pid = nvim.lua("return require('codecompanion.host').inspect().pid")
    nvim.command("Lazy reload codecompanion")
    leave_the_window(nvim)
    nvim.wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the end of the old host")
    nvim.wait_lua("return (vim.b.codecompanion_chat or {}).meter ~= nil")
    nvim.wait_for(lambda: answered(nvim), "the chat as it was")
    assert nvim.lua("return require('codecompanion.chat').current().id") == chat
    assert nvim.lines().count("hello there") == 1
    nvim.wait_for(lambda: nvim.lines()[-1] == "and then", "the draft")
    nvim.feed("<CR>")
    nvim.wait_for(lambda: sum(line.startswith("## CodeCompanion") for line in nvim.lines()) == 2, "a second answer")
    assert not nvim.blocked()
    assert "E95" not in nvim.messages()


CENSUS = """
local function count(list, name_of)
  local counts = {}
  for _, one in ipairs(list) do
    local name = name_of(one)
    counts[name] = (counts[name] or 0) + 1
  end
  return counts
end
collectgarbage()
collectgarbage()
local handles = {}
local walk = vim.fn.has("nvim-0.11") == 1 and vim.uv.walk or function() end -- 0.10 stops at handles of its own
walk(function(handle)
  if not handle:is_closing() then
    table.insert(handles, handle:get_type() .. (handle:is_active() and " active" or ""))
  end
end)
local marks = {}
for name, ns in pairs(vim.api.nvim_get_namespaces()) do
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    local found = #vim.api.nvim_buf_get_extmarks(bufnr, ns, 0, -1, {})
    if found > 0 then marks[name .. " in " .. vim.api.nvim_buf_get_name(bufnr)] = found end
  end
end
local wraps, paste = 0, vim.paste
while paste and paste ~= original_paste do
  wraps = wraps + 1
  local inner
  for index = 1, 20 do
    local name, value = debug.getupvalue(paste, index)
    if not name then break end
    inner = inner or (name == "paste" and value)
  end
  paste = inner
end
local children = vim.api.nvim_get_proc_children(vim.fn.getpid())
return {
  paste = { wraps = wraps, found = paste == original_paste },
  autocommands = count(vim.api.nvim_get_autocmds({}), function(one)
    return ("%s %s %s"):format(one.group_name or "", one.event, one.buflocal and "in a buffer" or one.pattern)
  end),
  commands = vim.tbl_count(vim.api.nvim_get_commands({})),
  handles = count(handles, tostring),
  on_key = vim.on_key(),
  namespaces = vim.tbl_count(vim.api.nvim_get_namespaces()),
  marks = marks,
  children = #children,
  highlights = vim.tbl_count(vim.api.nvim_get_hl(0, {})),
  buffers = count(vim.api.nvim_list_bufs(), function(bufnr)
    return vim.api.nvim_buf_get_name(bufnr) .. (vim.api.nvim_buf_is_loaded(bufnr) and " loaded" or "")
  end),
  keymaps = #vim.api.nvim_get_keymap("n") + #vim.api.nvim_get_keymap("i") + #vim.api.nvim_get_keymap("x"),
  clients = #vim.lsp.get_clients(),
  options = { vim.o.tabline, vim.o.runtimepath, vim.o.statusline, vim.wo.winbar, vim.wo.foldmethod },
  notify = tostring(vim.notify),
  select = tostring(vim.ui.select),
}
"""
"""Lua code that counts everything a plugin could leave behind in Neovim."""


@pytest.mark.thorough("other tests of this file reload once")
@pytest.mark.parametrize("binary", EVERY_NVIM)
def test_ten_reloads_leave_nothing_behind(start: Start, origin: Origin, binary: str) -> None:
    """`:Lazy reload codecompanion` runs with a chat on the screen, as after a configuration change."""
    spec = from_git(origin, "opts = { completion = { enabled = true, endpoint = 'ollama', model = 'm' } },")
    start(spec, binary=binary).__exit__()
    nvim = start(f"{{}}, {spec}", binary=binary, before="original_paste = vim.paste")
    talk(nvim)
    pids: list[int] = []

    def reload() -> None:
        pids.append(nvim.lua("return require('codecompanion.host').inspect().pid"))
        nvim.command("Lazy reload codecompanion")
        leave_the_window(nvim)
        nvim.wait_for(lambda: not Path(f"/proc/{pids[-1]}").exists(), "the end of the old host")
        nvim.wait_lua("return (vim.b.codecompanion_chat or {}).meter ~= nil")
        nvim.wait_for(lambda: answered(nvim), "the chat as it was")
        nvim.feed("iand<Esc>")

    def census() -> dict[str, Any]:
        nvim.settle()
        return dict(nvim.lua(CENSUS))

    reload()
    before: dict[str, Any] = {}

    def is_still() -> bool:
        last = dict(before)
        before.update(census())
        return bool(last == before)

    nvim.wait_for(is_still, "the same census twice")
    assert before["paste"] == {"wraps": 1, "found": True}
    for _ in range(10):
        reload()
    nvim.wait_for(lambda: census() == before, f"what was there before: {before}, now {census()}")
    assert not nvim.blocked()
    assert "Error" not in nvim.messages()


def test_open_chats_and_running_hosts_before_a_reload_cause_no_second_host(start: Start, origin: Origin) -> None:
    """Reports, lists and inline edits from before the reload belong to the old modules.

    They start no host when their chat has events.
    """
    start(from_git(origin)).__exit__()
    nvim = start(from_git(origin))
    talk(nvim)
    chat = nvim.lua("return vim.api.nvim_get_current_win()")
    for number in range(1, 4):
        nvim.command("CodeCompanionCost")
        nvim.wait_for(lambda: nvim.lines()[0].startswith(("# Cost", "# Usage")), "the report")
        nvim.lua("vim.api.nvim_set_current_win(...)", chat)
        nvim.feed("gd")
        nvim.wait_lua("return vim.api.nvim_win_get_config(0).relative ~= ''")
        pid = nvim.lua("return require('codecompanion.host').inspect().pid")
        nvim.command("Lazy reload codecompanion")
        leave_the_window(nvim)
        nvim.lua("vim.api.nvim_set_current_win(...)", chat)
        nvim.wait_for(lambda pid=pid: not Path(f"/proc/{pid}").exists(), "the end of the old host")  # type: ignore[misc]
        nvim.wait_for(lambda: answered(nvim), "the chat as it was")
        nvim.feed(f"Gimore {number}<Esc><CR>")  # the report of before the reload hears of it
        answers = number + 1
        nvim.wait_for(lambda n=answers: sum(x.startswith("## CodeC") for x in nvim.lines()) == n)  # type: ignore[misc]
        nvim.wait_lua("return vim.b.codecompanion_chat.state == 'idle'")
        nvim.settle()
        assert len(nvim.lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())")) == 1
    left = nvim.lua(
        """
        return vim.tbl_filter(function(name)
          return name:find("codecompanion.report") or name:find("codecompanion.float")
        end, vim.tbl_map(function(one) return one.group_name or "" end, vim.api.nvim_get_autocmds({})))
        """
    )
    assert left == []
    assert nvim.lua("return #vim.tbl_filter(function(w) return vim.api.nvim_win_get_config(w).relative ~= '' end,"
                    " vim.api.nvim_list_wins())") == 0  # fmt: skip


def test_another_plugins_wrapper_around_paste_survives_reloads(start: Start, origin: Origin) -> None:
    """The function wrapped by that plugin still works, and is not wrapped again."""
    start(from_git(origin)).__exit__()
    nvim = start(from_git(origin), before="original_paste = vim.paste")
    talk(nvim)
    nvim.lua(
        """
        local paste = vim.paste
        theirs = function(lines, phase) seen = (seen or 0) + 1; return paste(lines, phase) end
        vim.paste = theirs
        """
    )
    for _ in range(3):
        pid = nvim.lua("return require('codecompanion.host').inspect().pid")
        nvim.command("Lazy reload codecompanion")
        leave_the_window(nvim)
        nvim.wait_for(lambda pid=pid: not Path(f"/proc/{pid}").exists(), "the end of the old host")  # type: ignore[misc]
        nvim.wait_for(lambda: answered(nvim), "the chat as it was")
    assert nvim.lua("return vim.paste == theirs")
    nvim.feed("gg")
    nvim.lua("vim.api.nvim_paste('from the clipboard', false, -1)")
    assert nvim.lua("return seen") == 1
    assert nvim.lines()[-1] == "from the clipboard", "it still leads to the input"


def test_a_session_file_restores_the_chat_at_startup(start: Start, origin: Origin, tmp_path: Path) -> None:
    """`nvim -S` works right away, because the plugin is loaded before the session file is read."""
    start(from_git(origin)).__exit__()
    nvim = start(from_git(origin))
    talk(nvim)
    session = tmp_path / "Session.vim"
    nvim.command(f"mksession {session}")
    nvim.__exit__()
    nvim = start(from_git(origin), args=("-S", str(session)))
    nvim.wait_for(lambda: nvim.lines().count("hello there") == 1, "the chat")
    nvim.wait_for(lambda: answered(nvim), "its answer")
    nvim.feed("Giand again<Esc><CR>")
    nvim.wait_for(lambda: sum(line.startswith("## CodeCompanion") for line in nvim.lines()) == 2, "a second answer")
    assert not nvim.blocked()
