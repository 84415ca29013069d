"""Problems between a plugin and a plugin manager, tested without a real plugin manager, in every CI run.

`plain_manager.lua` is a small manager that runs lazy.nvim's steps in its order; `test_lazy_nvim.py` uses the real one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from plugin_managers import (
    EVERY_NVIM,
    Origin,
    answered,
    environments,
    loaded_modules,
    missing_commands,
    talk,
)

from fake_uv import fake_uv
from harness import Nvim, find_nvim, lua_string

pytestmark = pytest.mark.slow("a plugin manager starts Neovim again and again")

MANAGER = Path(__file__).with_name("plain_manager.lua")

Start = Callable[..., Nvim]


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return the repository to install from."""
    if shutil.which("git") is None or find_nvim() is None:
        pytest.skip("git and Neovim are needed")
    return Origin(tmp_path)


@pytest.fixture
def start(tmp_path: Path, origin: Origin) -> Iterator[Start]:
    """Return a function that starts a Neovim with the manager; all instances share one home."""
    with ExitStack() as stack:

        def start(*, opts: str = "{}", binary: str = EVERY_NVIM[0], env: dict[str, str] | None = None) -> Nvim:
            init = f"""
_G.manager = dofile({lua_string(str(MANAGER))})
manager.setup({lua_string(origin.url)}, vim.fn.stdpath("data") .. "/plugins/codecompanion", {opts})
"""
            variables = fake_uv(tmp_path) | (env or {})
            nvim = Nvim(tmp_path, init=init, runtimepath=False, env=variables, binary=binary, size=(100, 40))
            stack.enter_context(nvim)
            nvim.wait_lua("return vim.v.vim_did_enter == 1")
            return nvim

        yield start


def steps(nvim: Nvim) -> Any:
    """Return the steps that were run; a failed step includes its error."""
    return nvim.lua("return manager.log")


@pytest.mark.parametrize("binary", EVERY_NVIM)
def test_a_newcomer_can_install_restart_and_chat(start: Start, binary: str) -> None:
    """Duplicate help tags (E154) once stopped the build, and only three of nine commands existed after a restart."""
    nvim = start(binary=binary)
    assert steps(nvim) == ["clone", "docs", "build", "load"]
    assert nvim.lua("return manager.progress[#manager.progress]") == "the Python environment is ready"
    assert missing_commands(nvim) == []
    nvim.command("help codecompanion-install")
    assert nvim.lua("return vim.fn.expand('%:t')") == "codecompanion.txt"
    nvim.__exit__()
    nvim = start(binary=binary)
    assert steps(nvim) == ["load"]
    assert missing_commands(nvim) == []
    assert loaded_modules(nvim) == []
    talk(nvim)
    assert len(environments(nvim)) == 1
    assert not nvim.blocked()


def test_an_update_creates_a_new_environment_and_names_the_remedy(start: Start, origin: Origin) -> None:
    """The message names the remedy, because a running host belongs to the previous version."""
    nvim = start()
    talk(nvim)
    origin.publish("requirements.lock", "\n# changed\n")
    nvim.lua("manager.update()")
    assert steps(nvim)[-3:] == ["fetch", "docs", "build"]
    nvim.wait_for(lambda: "Restart Neovim" in nvim.messages(), "what to do")
    assert len(environments(nvim)) == 2
    assert answered(nvim)


def test_a_reload_keeps_the_commands_and_starts_a_new_host(start: Start) -> None:
    """The manager unsets `g:loaded_codecompanion`; the commands that still exist are ours."""
    nvim = start()
    talk(nvim)
    first = nvim.lua("return require('codecompanion.host').inspect().pid")
    nvim.lua("require('codecompanion.chat').close()")
    nvim.lua("manager.reload()")
    assert "belongs to another plugin" not in nvim.messages()
    assert missing_commands(nvim) == []
    talk(nvim)
    assert nvim.lua("return require('codecompanion.host').inspect().pid") != first


def test_a_reload_with_an_open_chat_redraws_it(start: Start) -> None:
    """The chat is restored from the history with its draft, there is one host, and the chat continues."""
    nvim = start()
    talk(nvim)
    nvim.feed("Giand then<Esc>")
    chat = nvim.lua("return require('codecompanion.chat').current().id")
    nvim.lua("manager.reload()")
    nvim.wait_for(lambda: answered(nvim) and nvim.lines()[-1] == "and then", "the chat as it was")
    assert nvim.lua("return require('codecompanion.chat').current().id") == chat
    assert nvim.lines().count("hello there") == 1
    nvim.feed("<CR>")
    nvim.wait_for(lambda: sum(line.startswith("## CodeCompanion") for line in nvim.lines()) == 2, "a second answer")
    assert not nvim.blocked()
