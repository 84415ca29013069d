"""The build step with the real uv and the real package index, beyond the reach of a fake.

Needs a network or a warm cache; otherwise the tests are skipped with a message. The developer's own cache is used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from plugin_managers import EVERY_NVIM, environments, talk

from harness import REPO, Nvim, lua_string

pytestmark = pytest.mark.slow("the packages are really installed")

Start = Callable[[], Nvim]


def find_uv() -> Path:
    """Return the path of uv, or skip the test."""
    found = shutil.which("uv") or str(REPO / ".venv/bin/uv")
    if not os.access(found, os.X_OK):
        pytest.skip("uv is not here; `make setup` leaves one in .venv")
    return Path(found)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a Neovim that finds the real uv and its cache."""
    uv = find_uv()
    cache = subprocess.run([str(uv), "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "uv").symlink_to(uv)
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "UV_CACHE_DIR": cache}
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Nvim(tmp_path, env=env, binary=EVERY_NVIM[0], size=(100, 40)))


def test_the_build_step_creates_an_environment_in_which_a_chat_answers(start: Start) -> None:
    """Every package in requirements.lock is installed with its hash, and the host runs in the environment."""
    nvim = start()
    nvim.lua(
        f"""
        _G.thread = coroutine.create(assert(loadfile({lua_string(str(REPO / "build.lua"))})))
        _G.said = {{}}
        local timer = vim.uv.new_timer()
        timer:start(0, 50, vim.schedule_wrap(function()
          if coroutine.status(thread) == "dead" then return timer:stop() end
          local ok, message = coroutine.resume(thread)
          if not ok then _G.failure = message end
          table.insert(_G.said, message)
        end))
        """
    )
    nvim.wait_lua("return coroutine.status(thread) == 'dead'")
    failure = nvim.lua("return _G.failure")
    if failure and ("network" in failure or "index does not answer" in failure):
        pytest.skip(f"the package index cannot be reached: {failure}")
    assert failure is None
    assert nvim.lua("return said[#said]") == "the Python environment is ready"
    assert len(environments(nvim)) == 1
    talk(nvim)
    assert nvim.lua("return require('codecompanion.install').environment().stamp.tool") == "uv"
