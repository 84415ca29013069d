"""Clones of Neovim plugins to run beside ours: each from an environment variable of its own, or from /work/.mirror."""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from plugin_managers import clone_of

from harness import find_nvim

NEEDS_NVIM = {"nvim-telescope+telescope.nvim": (0, 11)}
"""The lowest Neovim versions on which the newest versions of these plugins run."""


@cache
def plugin(mirrored: str) -> Path:
    """Return a clone of `owner+name`, shared by all tests of this process, or skip and name the places searched.

    `nvim-lualine+lualine.nvim` is searched at $LUALINE_NVIM first; a suffix such as `…@v1.8.0` selects that version.
    """
    mirrored, _, version = mirrored.partition("@")
    needed = NEEDS_NVIM.get(mirrored, (0, 0))
    if nvim_version() < needed:
        pytest.skip(f"{mirrored.replace('+', '/')} needs Neovim {needed[0]}.{needed[1]}")
    root = Path(tempfile.mkdtemp(prefix="plugin-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    name = mirrored.partition("+")[2]
    return clone_of(name.upper().replace(".", "_").replace("-", "_"), mirrored, root / name, version or "HEAD")


@cache
def nvim_version() -> tuple[int, int]:
    """Return the version of the Neovim that is tested."""
    command = [find_nvim() or "nvim", "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    major, minor = re.findall(r"\d+", printed)[:2]
    return int(major), int(minor)


def on_runtimepath(*mirrored: str) -> str:
    """Return the Lua that a plugin manager would have run for these plugins."""
    return "".join(f"vim.opt.rtp:append({str(plugin(one))!r})\n" for one in mirrored)
