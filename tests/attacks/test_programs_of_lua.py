"""Neovim starts no program from a workspace folder, and no program with the workspace as its working directory."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.attacks.conftest import Tally

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nvim"))

from harness import Nvim, find_nvim

SETUP = """
require("codecompanion").setup({})
_G.run = function(path)
  vim.env.PATH = path
  _G.done = false
  require("codecompanion.install").run(function() end, function() _G.done = true end)
end
_G.paste = function(path)
  vim.env.PATH, vim.env.DISPLAY, vim.env.WAYLAND_DISPLAY = path, ":9", "w"
  _G.done = false
  require("codecompanion.chat.sources.clipboard").read(function() _G.done = true end)
end
"""
NAMES = ("uv", "python3", "python3.13", "python3.12", "python3.11", "python", "wl-paste", "xclip")


@pytest.mark.skipif(find_nvim() is None, reason="there is no Neovim here")
@pytest.mark.parametrize("is_mine", [False, True])
def test_no_program_of_the_workspace_runs(tmp_path: Path, tally: Tally, is_mine: bool) -> None:
    """The first use installs packages and `/paste` reads the clipboard.

    Only the user's own programs, elsewhere, run.
    """
    work, mine, canary, where = tmp_path / "work", tmp_path / "mine", tmp_path / "canary", tmp_path / "where"
    for folder in (work, work / "bin", work / ".venv/bin", mine):
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            told = f"pwd >> {where}" if folder == mine else f"echo {name} >> {canary}"
            (folder / name).write_text(f"#!/bin/sh\n{told}\nexit 1\n")
            (folder / name).chmod(0o755)
    (tmp_path / "link").symlink_to(work / "bin")
    entries = ["", ".", "./", "bin", ".venv/bin", "../work/bin", str(work / ".venv/bin"), str(tmp_path / "link")]
    tail = str(mine) if is_mine else str(tmp_path / "none")
    tried = held = 0
    with Nvim(tmp_path, init=SETUP) as nvim:
        for entry in entries:
            for road in ("run", "paste"):
                nvim.lua(f"_G.{road}(...)", f"{entry}:{tail}")
                deadline = time.monotonic() + 20
                while not nvim.lua("return _G.done") and time.monotonic() < deadline:
                    time.sleep(0.02)
                tried += 1
                held += not canary.exists()
                canary.unlink(missing_ok=True)
    tally("programs of Neovim's side × PATHs", tried=tried, held=held)
    assert held == tried
    assert not is_mine or set(where.read_text().split()) == {"/"}
