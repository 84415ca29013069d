"""The recipes in doc/install.md for vim.pack, mini.deps and no manager at all, run as printed with the real programs.

vim.pack comes with Neovim 0.12, which `$NVIM_BIN` or one of `$NVIM_BINS` must be. mini.deps needs a clone of
nvim-mini/mini.nvim: `$MINI_NVIM`, or /work/.mirror. Otherwise the tests are skipped with a message.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from plugin_managers import (
    EVERY_NVIM,
    Origin,
    clone_of,
    environments,
    git,
    health,
    loaded_modules,
    missing_commands,
    talk,
)

from fake_uv import fake_uv
from harness import REPO, Nvim, lua_string

pytestmark = pytest.mark.slow("a real Neovim installs the plugin in every way")

Start = Callable[..., Nvim]


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return the repository to install from."""
    return Origin(tmp_path)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a Neovim with an init file; all instances share one home."""
    with ExitStack() as stack:

        def start(init: str, binary: str = EVERY_NVIM[0]) -> Nvim:
            nvim = Nvim(tmp_path, init=init, runtimepath=False, env=fake_uv(tmp_path), binary=binary, size=(100, 40))
            stack.enter_context(nvim)
            nvim.wait_lua("return vim.v.vim_did_enter == 1")
            return nvim

        yield start


def recipe(beginning: str, origin: Origin, language: str = "lua") -> str:
    """Return the page's code block with this beginning, with the URL of the test's repository."""
    text = (REPO / "doc/install.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"(?ms)^```{language}\n(.*?)^```", text)
    found = [block for block in blocks if block.startswith(beginning)]
    assert len(found) == 1, f"doc/install.md has {len(found)} recipes that begin with {beginning}"
    assert "https://…/codecompanion.git" in found[0]
    return str(found[0].replace("https://…/codecompanion.git", origin.url))


def with_pack() -> str:
    """Return a Neovim that has vim.pack, or skip the test."""
    for binary in EVERY_NVIM:
        script = "+lua io.write(vim.fn.has('nvim-0.12'))"
        done = subprocess.run(
            [binary, "--clean", "--headless", script, "+qa"], capture_output=True, text=True, check=False
        )
        if done.stdout.strip() == "1":
            return binary
    pytest.skip("vim.pack needs Neovim 0.12: name one in NVIM_BINS")


def works(nvim: Nvim, *, tags: bool) -> None:
    """Check a user's first steps: the help, every command, and a chat that installs its environment and answers."""
    assert not nvim.blocked()
    assert missing_commands(nvim) == []
    assert loaded_modules(nvim) == []
    nvim.command("help codecompanion-install" if tags else "CodeCompanion help")
    assert nvim.lua("return vim.fn.expand('%:t')") == "codecompanion.txt"
    nvim.command("quit")
    report = health(nvim)
    assert "The Python packages are not installed yet" in report
    assert "The manual has its help tags" in report
    talk(nvim)
    assert len(environments(nvim)) == 1
    report = health(nvim)
    assert "ERROR" not in report
    assert "created with uv" in report
    assert not nvim.blocked()


def test_vim_pack_installs_the_plugin(start: Start, origin: Origin) -> None:
    """It is installed at the first start, without a build step; the first chat creates the environment."""
    binary = with_pack()
    # Installing asks first, which a user answers with y.
    yes = "vim.fn.confirm = function() return 1 end\n"
    init = yes + recipe("vim.pack.add", origin)
    first = start(init, binary)
    assert missing_commands(first) == []
    first.__exit__()
    nvim = start(init, binary)
    works(nvim, tags=True)
    origin.publish("requirements.lock", "\n# changed\n")
    nvim.lua("vim.pack.update({ 'codecompanion' }, { force = true })")
    nvim.__exit__()
    nvim = start(init, binary)
    talk(nvim)
    assert len(environments(nvim)) == 2, "made anew by the first chat after the update"


def test_mini_deps_installs_the_plugin(start: Start, origin: Origin, tmp_path: Path) -> None:
    """It is installed at the first start; the first chat creates the environment, even after an update."""
    mini = clone_of("MINI_NVIM", "nvim-mini+mini.nvim", tmp_path / "mini.nvim")
    manager = f"vim.opt.runtimepath:prepend({lua_string(str(mini))})\nrequire('mini.deps').setup()\n"
    init = manager + recipe("MiniDeps.add", origin)
    first = start(init)
    assert missing_commands(first) == []
    first.__exit__()
    nvim = start(init)
    works(nvim, tags=True)
    origin.publish("requirements.lock", "\n# changed\n")
    nvim.lua("MiniDeps.update({ 'codecompanion' }, { force = true })")
    nvim.__exit__()
    nvim = start(init)
    talk(nvim)
    assert len(environments(nvim)) == 2, "made anew by the first chat after the update"


@pytest.mark.parametrize("binary", EVERY_NVIM)
def test_a_plain_runtimepath_works(start: Start, origin: Origin, tmp_path: Path, binary: str) -> None:
    """Without a manager, a clone on 'runtimepath' in the init file is enough."""
    git(tmp_path, "clone", "-q", origin.url, "checkout")
    checkout = lua_string(str(tmp_path / "checkout"))
    works(start(f"vim.opt.runtimepath:prepend({checkout})\n", binary), tags=False)


@pytest.mark.parametrize("binary", EVERY_NVIM)
def test_a_package_folder_works(start: Start, origin: Origin, tmp_path: Path, binary: str) -> None:
    """Without a manager and an init file, the page's command is enough; help tags are generated manually."""
    command = recipe("git clone", origin, "sh").replace("~/.local/share", str(tmp_path / "data"))
    (tmp_path / "data").mkdir(exist_ok=True)
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    nvim = start("", binary)
    nvim.command("helptags ALL")
    works(nvim, tags=True)
