"""The plugin in the real lazy.nvim: spec from lazy.lua, commands as triggers, build.lua as the build step.

Needs a clone of folke/lazy.nvim: `$LAZY_NVIM` (a folder or a bare repository), or /work/.mirror.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nvim"))

from harness import REPO, Nvim, lua_string

SOURCE = Path(os.environ.get("LAZY_NVIM", "/work/.mirror/folke+lazy.nvim/repo"))

# Stands for uv: makes an "environment" and says what uv says.
FAKE_UV = """#!/bin/sh
case "$*" in
  *"venv "*) for dir in "$@"; do :; done
     mkdir -p "$dir/bin" && printf '#!/bin/sh\\necho 3.12.4\\n' > "$dir/bin/python" && chmod +x "$dir/bin/python" ;;
  *"pip install"*) echo " + pynvim==0.6.0" >&2 ;;
esac
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Nvim]]:
    """Return a function that starts a Neovim with lazy.nvim and this repository as a plugin of the given name."""
    if not SOURCE.exists():
        pytest.skip(f"no clone of lazy.nvim at {SOURCE}; set LAZY_NVIM")
    lazy = tmp_path / "lazy.nvim"
    subprocess.run(["git", "clone", "-q", "--shared", str(SOURCE), str(lazy)], check=True)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "uv").write_text(FAKE_UV)
    (programs / "uv").chmod(0o755)
    with ExitStack() as stack:

        def start(name: str) -> Nvim:
            init = f"""
vim.opt.runtimepath:prepend({lua_string(str(lazy))})
require("lazy").setup({{
  spec = {{ {{ dir = {lua_string(str(REPO))}, name = "{name}" }} }},
  install = {{ missing = false }},
  change_detection = {{ enabled = false }},
  rocks = {{ enabled = false }},
}})
"""
            env = {"PATH": f"{programs}:{os.environ['PATH']}"}
            return stack.enter_context(Nvim(tmp_path, init=init, runtimepath=False, env=env, size=(120, 40)))

        yield start


def test_lazy_runs_the_build_step_and_shows_its_progress(start: Callable[[str], Nvim]) -> None:
    """`build.lua` is found without a `build` key; its yields are the task's messages."""
    nvim = start("codecompanion")
    nvim.lua("require('lazy').build({ plugins = { 'codecompanion' }, show = false })")
    nvim.wait_for(
        lambda: nvim.lua("return dofile(...).find() ~= nil", str(REPO / "lua/codecompanion/environment.lua")),
        "the environment",
    )
    output = nvim.wait_lua(
        """
        for _, task in ipairs(require("lazy.core.config").plugins.codecompanion._.tasks or {}) do
          if task.name == "build" and not task:running() then
            return task:output() .. (task:has_errors() and " ERRORS" or "")
          end
        end
        return false
        """
    )
    assert "making the Python environment with uv" in output
    assert "the Python environment is ready" in output
    assert "ERRORS" not in output


def test_a_command_loads_the_plugin_and_nothing_does_before(start: Callable[[str], Nvim]) -> None:
    """The commands of `lazy.lua` are triggers; loading through them runs the command once."""
    nvim = start("codecompanion")
    loaded = "return require('lazy.core.config').plugins.codecompanion._.loaded ~= nil"
    assert nvim.lua("return vim.fn.exists(':CodeCompanionChat')") == 2
    assert not nvim.lua(loaded)
    nvim.command("CodeCompanion isntall")
    nvim.wait_for(lambda: "no isntall" in nvim.messages())
    assert nvim.lua(loaded)
    assert not nvim.blocked()


def test_a_plugin_under_another_name_is_loaded_at_start(start: Callable[[str], Nvim]) -> None:
    """`lazy.lua` speaks of `codecompanion`; a fork that is called otherwise must still work."""
    nvim = start("my-fork")
    nvim.command("CodeCompanion isntall")
    nvim.wait_for(lambda: "no isntall" in nvim.messages())
    assert not nvim.blocked()
