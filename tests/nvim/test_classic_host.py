"""`host = "python3"`: the remote plugin in the host shared by all Python plugins, after `:UpdateRemotePlugins`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import REPO, Nvim, lua_string

HERE = Path(__file__).parent
RECORD = """
_G.replies, _G.exits = {}, {}
_G.host = require("codecompanion.host")
host.subscribe(function(event) if event.type == "host_exit" then table.insert(_G.exits, event) end end)
_G.ask = function(text)
  host.request("save_draft", { chat = "c", text = text }, function(err, result)
    table.insert(_G.replies, err or result)
  end)
end
"""


@pytest.fixture
def python3(tmp_path: Path) -> Path:
    """Return a Python for `g:python3_host_prog` whose bridge gets the stub runtime."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "from stub_host import StubRuntime\n"
        "from codecompanion.engine import bridge\n"
        "bridge.default_runtime = StubRuntime\n"
    )
    script = tmp_path / "python3"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture
def start(nvim_factory: Callable[..., Nvim], python3: Path, tmp_path: Path) -> Callable[..., Nvim]:
    """Return a function that starts a Neovim with the Python provider and the given `host` option."""
    trace = tmp_path / "trace"
    trace.touch()

    def start(host: str, extra: str = "") -> Nvim:
        private = tmp_path / "private-python"
        private.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "stub_host.py"}" "$@"\n')
        private.chmod(0o755)
        options = f'{{ host = "{host}", python = {{ host_prog = {lua_string(str(private))} }} }}'
        provider = f"vim.g.python3_host_prog = {lua_string(str(python3))}"
        init = f'{extra}\n{provider}\nrequire("codecompanion.config").setup({options})\n'
        nvim = nvim_factory(init=init, env={"STUB_TRACE": str(trace)})
        nvim.lua(RECORD)
        return nvim

    return start


def register(start: Callable[..., Nvim]) -> None:
    """Run `:UpdateRemotePlugins` and leave."""
    nvim = start("private")
    nvim.command("silent! UpdateRemotePlugins")
    manifest = Path(nvim.lua("return vim.fn.stdpath('data')"), "rplugin.vim")
    text = manifest.read_text()
    assert text.count("codecompanion_host.py") == 1
    assert text.count("'name': ") == 1, "one function, no commands"
    nvim.notify_lua("vim.cmd('qa!')")


def hellos(tmp_path: Path) -> int:
    """Return the number of runtimes greeted so far."""
    return len((tmp_path / "trace").read_text().splitlines())


def test_the_shared_host_serves_the_chat(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """`host = "python3"` (the classic setup, after `:UpdateRemotePlugins`) works too."""
    register(start)
    nvim = start("python3")
    nvim.lua("ask('one'); ask('two')")
    nvim.wait_lua("return #_G.replies == 2")
    assert nvim.lua("return _G.replies") == ["one", "two"]
    assert nvim.lua("return host.inspect().job == nil")
    assert nvim.lua("return vim.fn.CodeCompanionHostInfo()")["version"] == sys.version.split()[0]
    assert hellos(tmp_path) == 1


def test_a_registered_plugin_and_the_private_host_start_one_runtime(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """With both installed, nothing is registered twice and only one host starts."""
    register(start)
    nvim = start("private")
    nvim.lua("ask('one')")
    nvim.wait_lua("return #_G.replies == 1")
    shared = nvim.lua("return vim.fn.CodeCompanionHostInfo()")
    assert shared["pid"] != nvim.lua("return host.inspect().pid"), "the shared host was asked directly"
    nvim.lua("ask('two')")
    nvim.wait_lua("return #_G.replies == 2")
    assert hellos(tmp_path) == 1
    assert not nvim.blocked()


def test_an_unregistered_plugin_is_reported_with_a_remedy(start: Callable[..., Nvim]) -> None:
    """Without the manifest the shared host would not know the verbs, and a hit-enter prompt would follow."""
    nvim = start("python3")
    nvim.lua("ask('one')")
    nvim.wait_lua("return #_G.replies == 1")
    assert ":UpdateRemotePlugins" in nvim.lua("return _G.replies[1]")
    assert nvim.lua("return host.status()") == "failed"
    assert not nvim.blocked()


def test_without_the_rplugin_plugin_the_classic_setup_is_explained(start: Callable[..., Nvim]) -> None:
    """The `rplugin` runtime plugin is disabled, so no manifest is read."""
    register(start)
    nvim = start("python3", "vim.g.loaded_remote_plugins = 1")
    nvim.lua("ask('one')")
    nvim.wait_lua("return #_G.replies == 1")
    assert ":UpdateRemotePlugins" in nvim.lua("return _G.replies[1]")


def test_the_death_of_the_shared_host_is_detected(start: Callable[..., Nvim]) -> None:
    """The shared host has no exit event; its death is detected by the next request."""
    register(start)
    nvim = start("python3")
    nvim.lua("ask('one')")
    nvim.wait_lua("return #_G.replies == 1")
    nvim.lua("vim.fn.jobstop(host.inspect().channel); vim.fn.jobwait({ host.inspect().channel }, 5000)")
    nvim.lua("ask('two')")
    nvim.wait_lua("return #_G.replies == 2")
    assert "Restart Neovim" in nvim.lua("return _G.replies[2]")
    assert len(nvim.lua("return _G.exits")) == 1


def test_we_cannot_restart_the_shared_host(start: Callable[..., Nvim]) -> None:
    """Other plugins run in it."""
    register(start)
    nvim = start("python3")
    nvim.lua("ask('one')")
    nvim.wait_lua("return #_G.replies == 1")
    nvim.lua("host.restart()")
    nvim.wait_for(lambda: "restart Neovim" in nvim.messages())
    nvim.lua("ask('two')")
    nvim.wait_lua("return _G.replies[2] == 'two'")


def test_a_shared_python_without_our_packages_is_reported(start: Callable[..., Nvim], python3: Path) -> None:
    """The provider's Python belongs to the user; the sentence names the alternative."""
    register(start)
    python3.write_text(python3.read_text().replace("exec", f'PYTHONPATH="$PYTHONPATH:{python3.parent}" exec', 1))
    site = python3.parent / "site" / "sitecustomize.py"
    site.write_text("import sys\nsys.modules['msgspec'] = None\n")
    nvim = start("python3")
    nvim.lua("ask('one')")
    nvim.wait_lua("return #_G.replies == 1")
    assert "msgspec" in nvim.lua("return _G.replies[1]")
    assert ":CodeCompanion install" in nvim.lua("return _G.replies[1]")
    assert not nvim.blocked()


def test_the_remote_plugin_stays_thin() -> None:
    """The remote plugin has fewer than 120 lines, one handler and one function."""
    text = (REPO / "rplugin" / "python3" / "codecompanion_host.py").read_text()
    assert len(text.splitlines()) < 120
    assert text.count("@pynvim.rpc_export") == 1
    assert text.count("@pynvim.function") == 1
